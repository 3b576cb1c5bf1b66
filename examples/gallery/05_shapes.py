"""Groups of any shape.

Two moons are not described by centers. A graph of nearest neighbors connects the points of each moon, and the gap in
its spectrum gives the number of groups.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from partita import SpectralClustering

moons, _ = make_moons(400, noise=0.05, random_state=0)
model = SpectralClustering(random_state=0).fit(moons)

figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
axes[0].scatter(*moons.T, c=model.labels_, cmap="coolwarm", s=12)
axes[0].set(title=f"{model.n_clusters_} groups", aspect="equal")
axes[1].plot(range(1, 9), model.eigenvalues_[:8], "o-")
axes[1].set(title="the gap in the spectrum", xlabel="eigenvalue")
