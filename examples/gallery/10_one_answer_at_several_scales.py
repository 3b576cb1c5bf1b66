"""One answer at several scales.

A mixture finds more groups of handwritten digits than there are digits. Its groups form a tree: each line is a number
of groups, each box a group, and the bands lead to its parts. The answer is framed. On the right, the mean image of each
group at the level of eight, without a new fit.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from partita import Mixture
from partita.plotting import plot_grain

X = load_digits(as_frame=True).data[:600]
model = Mixture(random_state=0).fit(X)
level = model.at(8)

figure = plt.figure(figsize=(11, 5.6), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=[3, 1])
plot_grain(model, max_levels=8, ax=left.subplots())
for k, ax in enumerate(right.subplots(4, 2).flat):
    ax.imshow(X[level.labels == k].mean().to_numpy().reshape(8, 8), cmap="Greys")
    ax.set_title(f"{k + 1}: {(level.labels == k).sum()} images", fontsize=8)
    ax.set_axis_off()
