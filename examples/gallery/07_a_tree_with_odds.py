"""A tree with odds.

Every merge of a Bayesian tree has odds for one group against two. The tree is cut where the odds are against a merge.
The colors of the leaves are the species of iris, which were not used.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from partita import BayesianTree
from partita.plotting import plot_tree

iris = load_iris()
model = BayesianTree().fit(iris.data[::3])

figure, axes = plt.subplots(figsize=(9, 3.8), layout="constrained")
plot_tree(model, classes=iris.target_names[iris.target[::3]], ax=axes)
