"""Draws from the priors.

Without any data: a mixture drawn from a Dirichlet process, the weights of a stick-breaking draw, and the growth of the
number of clusters with the number of objects under a Dirichlet process and under Pitman-Yor.
"""

import matplotlib.pyplot as plt

from partita.datasets import sample_dp_mixture, sample_restaurant, sample_stick_breaking, table_growth
from partita.plotting import plot_mixture_draw, plot_stick_weights, plot_table_growth

figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
plot_mixture_draw(sample_dp_mixture(500, concentration=2.0, random_state=1), ax=axes[0])
plot_stick_weights(sample_stick_breaking(5.0, random_state=0)[0], ax=axes[1])
for discount, name in ((0.0, "Dirichlet process"), (0.4, "Pitman-Yor, discount 0.4")):
    seats = sample_restaurant(1000, 2.0, discount, n_draws=10, random_state=0)
    plot_table_growth(table_growth(seats), label=name, ax=axes[2])
axes[2].legend(frameon=False)
