"""One table, several groupings.

Twenty columns that were drawn in four views, with three groups of rows in each. CrossCat finds which columns depend on
each other (the blocks of the left picture; one column is left alone) and groups the rows by each set of columns. The
right picture compares two of the groupings: they are independent.
"""

import matplotlib.pyplot as plt

from partita import CrossCat
from partita.datasets import make_planted_views
from partita.plotting import plot_alluvial, plot_dependence

data = make_planted_views(1, 200, 20, 4, separation=2.0, random_state=0)
model = CrossCat(inference="vb", random_state=0).fit(data.X)

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
plot_dependence(model, ax=axes[0])
plot_alluvial(*model.view_labels_[:, :2].T, names=("view 1", "view 2"), ax=axes[1])
