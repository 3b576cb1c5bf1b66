"""Groups that are shapes.

Two spirals have no centres. A graph of nearest neighbours follows them, and the gap in its spectrum gives their number.
"""

import matplotlib.pyplot as plt
import numpy as np

from partita import SpectralClustering

rng = np.random.default_rng(0)
turn = np.sqrt(rng.uniform(0.05, 1, 400)) * 3.5 * np.pi
sign = np.repeat([-1, 1], 200)
spirals = (sign * turn)[:, None] * np.column_stack([np.cos(turn), np.sin(turn)]) / 10 + rng.normal(
    0, 0.02, (400, 2)
)
model = SpectralClustering(random_state=0).fit(spirals)

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
axes[0].scatter(*spirals.T, c=model.labels_, cmap="coolwarm", s=12)
axes[0].set(title=f"{model.n_clusters_} groups", aspect="equal")
axes[1].plot(model.eigenvalues_, "o-")
axes[1].set(title="the gap in the spectrum", xlabel="eigenvalue")
