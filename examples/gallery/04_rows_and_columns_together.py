"""Groups of rows and columns.

Yes/no answers of 40 people to 30 questions. The relational model groups people and questions at the same time, with a
probability for each number of groups.
"""

import matplotlib.pyplot as plt
import numpy as np

from partita import RelationalBlocks
from partita.plotting import plot_blocks, plot_side_clusters

rng = np.random.default_rng(0)
shares = np.array([[0.9, 0.1, 0.5], [0.1, 0.9, 0.5]])
people, questions = rng.integers(2, size=40), rng.integers(3, size=30)
answers = (rng.random((40, 30)) < shares[people][:, questions]).astype(int)
model = RelationalBlocks(n_chains=2, n_draws=100, burn_in=100, random_state=0).fit(answers)

figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained", width_ratios=[1.4, 1])
plot_blocks(model, answers, ax=axes[0])
plot_side_clusters(model, "columns", ax=axes[1])
