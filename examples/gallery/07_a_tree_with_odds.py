"""A tree that says where to cut it.

Every merge of a Bayesian tree has odds: is this one group, or are these two? The tree is cut where they fall below one
half; the coloured leaves are iris' species, which it did not see.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from partita import BayesianTree
from partita.plotting import plot_tree

iris = load_iris()
model = BayesianTree().fit(iris.data[::3])

figure, axes = plt.subplots(figsize=(9, 3.8), layout="constrained")
plot_tree(model, classes=iris.target_names[iris.target[::3]], ax=axes)
