"""How many groups, and how certain?

A table of numbers, counts, yes/no and categories with missing cells. The mixture gives a probability for each number of
groups and a confidence for each row.
"""

import matplotlib.pyplot as plt

from partita import Mixture
from partita.datasets import load_visitors
from partita.plotting import plot_confidence, plot_n_clusters

visitors = load_visitors(as_frame="pandas").frame
model = Mixture(kinds={"rooms_visited": "count", "photos_taken": "count"}, random_state=0).fit(visitors)

figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
plot_n_clusters(model, ax=axes[0])
plot_confidence(model, ax=axes[1])
