"""Which results can be trusted?

Three groups that touch. Hollow points are uncertain: they lie between two groups. The map shows the share of the draws
in which two rows are in the same group, and the chains agree on the number of groups.
"""

import matplotlib.pyplot as plt
import numpy as np

from partita import Mixture
from partita.plotting import plot_coclustering, plot_scatter, plot_trace

rng = np.random.default_rng(0)
z = np.repeat([0, 1, 2], [100, 60, 40])
X = np.array([[0.0, 0.0], [4.0, 0.0], [2.0, 4.0]])[z] + rng.normal(size=(200, 2))
model = Mixture(random_state=0).fit(X)

figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
plot_scatter(model, X, "x0", "x1", ax=axes[0])
axes[0].set_xlim(-3, 11)  # room for the legend
plot_coclustering(model, ax=axes[1])
plot_trace(model, ax=axes[2])
