"""Many clusterings into one.

Thirty k-means runs on bootstrap samples of wine, with 2 to 13 clusters and a third of the labels missing. The
consensus finds the number of clusters. The heat map shows how often two objects were put together, ordered by cluster.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from partita import Consensus
from partita.ensembles import bootstrap_ensemble
from partita.plotting import plot_coclustering, plot_k_scores

labels = bootstrap_ensemble(load_wine().data, 30, random_state=0)
model = Consensus(random_state=0).fit(labels)

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
plot_k_scores(model, ax=axes[0])
plot_coclustering(model, labels, ax=axes[1])
