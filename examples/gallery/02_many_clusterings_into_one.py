"""Many clusterings into one.

Thirty k-means runs on bootstrap samples of wine, with 2 to 13 clusters and a third of the labels missing. The
consensus has its own number of clusters; the heat map shows how often two objects were put together, in its order.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

from partita import Consensus
from partita.ensembles import bootstrap_ensemble
from partita.plotting import plot_k_scores

labels = bootstrap_ensemble(load_wine().data, 30, random_state=0)
model = Consensus(random_state=0).fit(labels)

order = np.argsort(model.labels_, kind="stable")
i, j = np.meshgrid(order, order, indexing="ij")
together = model.coclustering(i.ravel(), j.ravel()).reshape(i.shape)

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
plot_k_scores(model, ax=axes[0])
axes[1].imshow(together, cmap="Blues", vmin=0, vmax=1)
axes[1].set(title="together, in the order of the consensus", xticks=[], yticks=[])
