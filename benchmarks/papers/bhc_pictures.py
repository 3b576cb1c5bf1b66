"""Murphy's figures 25.13, 25.15, 25.16 and 25.17, and a Bayesian tree with the odds of its merges.

Yeast: 310 genes at seven times, with correlation as the similarity, as in hclustYeastDemo. Newsgroups: 800 documents
of the hundred-word table (four groups of newsgroups, 200 documents each), which replaces the 500 words of the paper.
"""

from __future__ import annotations

YEAST_TIMES = (0, 9.5, 11.5, 13.5, 15.5, 18.5, 20.5)  # hours


def draw_all(folder: str, n_documents: int = 800) -> dict:
    """Every picture; returns what they show in numbers."""
    import numpy as np

    plt = _pyplot()
    from benchmarks.data import load_benchmark

    yeast = load_benchmark("yeast310").X
    sizes = draw_yeast_table(plt, yeast, f"{folder}/yeast_tree.png")
    draw_yeast_links(plt, yeast, f"{folder}/yeast_links.png")
    news = load_benchmark("newsgroups_w100")
    rng = np.random.default_rng(0)
    rows = np.concatenate(
        [rng.choice(np.flatnonzero(news.target == c), n_documents // 4, replace=False) for c in range(4)]
    )
    found = {"yeast_sizes": sizes, **draw_newsgroups(plt, news, rows, folder)}
    found["odds_clusters"] = draw_odds(plt, f"{folder}/bhc_odds.png")
    return found


def draw_yeast_table(plt, X, path: str) -> list[int]:
    """Figure 25.13: genes in the order of the leaves; 16 clusters, whose sizes are returned."""
    import numpy as np
    from scipy.spatial.distance import pdist

    from partita import Agglomerative
    from partita.plotting import plot_leaf_curves, plot_leaf_table

    model = Agglomerative(16, metric="precomputed").fit(pdist(X, "correlation"))
    figure = plt.figure(figsize=(11, 6), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1, 1.5])
    ax = left.add_axes([0.4, 0.13, 0.55, 0.82])
    plot_leaf_table(model, X, columns=YEAST_TIMES, ax=ax).set_xlabel("hours")
    plot_leaf_curves(model, X, columns=YEAST_TIMES, figure=right)
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return sorted(np.bincount(model.labels_).tolist(), reverse=True)


def draw_yeast_links(plt, X, path: str) -> None:
    """Figure 25.15: single, complete and average linkage, and the Bayesian tree."""
    from scipy.spatial.distance import pdist

    from partita import Agglomerative, BayesianTree
    from partita.plotting import plot_tree

    figure, axes = plt.subplots(2, 2, figsize=(10, 6), layout="constrained")
    for ax, link in zip(axes.flat, ("single", "complete", "average"), strict=False):
        model = Agglomerative(16, linkage=link, metric="precomputed").fit(pdist(X, "correlation"))
        plot_tree(model, ax=ax).set_title(f"{link} linkage, 16 clusters", loc="left")
    model = BayesianTree("gaussian").fit(X)
    plot_tree(model, odds=0, ax=axes[1, 1])
    axes[1, 1].set_title(f"Bayesian tree, {model.n_clusters_} clusters", loc="left")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_newsgroups(plt, news, rows, folder: str) -> dict:
    """Figures 25.16 and 25.17: both trees with the classes of their leaves, and the words at their upper nodes."""
    import numpy as np

    from partita import Agglomerative, BayesianTree
    from partita.metrics.trees import dendrogram_purity
    from partita.plotting import plot_node_words, plot_tree

    words = [name.removeprefix("w_") for name in news.feature_names]
    X, names = news.X[rows], np.array(news.target_names[0])[news.target[rows]]
    models = {
        "average linkage": Agglomerative(4).fit(X),
        "Bayesian tree": BayesianTree("bernoulli").fit(X),
    }
    purity = {name: dendrogram_purity(model.linkage_, names) for name, model in models.items()}
    figure, axes = plt.subplots(2, 1, figsize=(10, 6.5), layout="constrained")
    for ax, (name, model) in zip(axes, models.items(), strict=True):
        plot_tree(model, classes=names, odds=0, ax=ax)
        ax.set_title(f"{name}: dendrogram purity {purity[name]:.3f}", loc="left")
    figure.savefig(f"{folder}/newsgroups_trees.png", dpi=110)
    plt.close(figure)
    figure, axes = plt.subplots(2, 1, figsize=(10, 9), layout="constrained")
    for ax, (name, model) in zip(axes, models.items(), strict=True):
        plot_node_words(model, X, words, n_nodes=9, ax=ax).set_title(name, loc="left")
    figure.savefig(f"{folder}/newsgroups_words.png", dpi=110)
    plt.close(figure)
    return {"newsgroups_purity": {name: round(value, 3) for name, value in purity.items()}}


def draw_odds(plt, path: str) -> int:
    """A Bayesian tree of four groups in the plane, its upper merges with their log odds."""
    import numpy as np

    from partita import BayesianTree
    from partita.plotting import plot_tree

    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 2)) + 5.0 * np.array([[0, 0], [1.2, 0], [0, 1.5], [2.5, 2.5]])[np.arange(80) % 4]
    model = BayesianTree().fit(X)
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    from partita.plotting import plot_scatter

    plot_scatter(model, X, "x0", "x1", ax=axes[0])
    plot_tree(model, odds=8, ax=axes[1]).set_title("log odds at the merges", loc="left")
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return int(model.n_clusters_)


def _pyplot():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt
