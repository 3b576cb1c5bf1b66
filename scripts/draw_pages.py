"""Draw the figures of docs/similarity.md, docs/views.md and docs/grain.md: priors, views of animals, levels of wines.

The animals are fitted as in the benchmark `crosscat` (PARTITA_DATA names the folder of data sets). If the clusters are
not those of the result file, a message says so.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from benchmarks.papers.crosscat import fit_real
from partita import Mixture
from partita.datasets import sample_dp_mixture, sample_restaurant, sample_stick_breaking, table_growth
from partita.partitions import DirichletProcess, PitmanYor, expected_n_clusters
from partita.plotting import (
    plot_grain,
    plot_mixture_draw,
    plot_stick,
    plot_stick_weights,
    plot_table_growth,
    plot_views,
)

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
N_CUSTOMERS = 400


def main() -> int:
    save(draw_mixtures(), "dp_mixture_draws")
    save(draw_sticks(), "sticks_and_tables")
    save(draw_animals(), "animals_views")
    save(draw_grain(), "grain")
    return 0


def save(figure: plt.Figure, name: str) -> None:
    figure.savefig(IMAGES / f"{name}.png", dpi=80, bbox_inches="tight" if name == "grain" else None)
    plt.close(figure)


def draw_mixtures() -> plt.Figure:
    """Murphy's figure 25.3: two mixtures, one per line of panels, with a growing number of rows."""
    figure, axes = plt.subplots(2, 3, figsize=(12.0, 7.5), layout="constrained")
    for seed, line in enumerate(axes, 1):
        drawn = sample_dp_mixture(1000, concentration=1.0, random_state=seed)
        for n_rows, ax in zip((50, 500, 1000), line, strict=True):
            plot_mixture_draw(drawn, n_samples=n_rows, ax=ax)
    return figure


def draw_sticks() -> plt.Figure:
    """Murphy's figure 25.5, and the Chinese restaurants with the same parameters."""
    figure, axes = plt.subplots(2, 3, figsize=(12.0, 6.0), layout="constrained")
    plot_stick(sample_stick_breaking(2.0, n_weights=6, random_state=1)[0], ax=axes[0, 0])
    for seed, concentration in enumerate((2.0, 5.0)):
        sticks = sample_stick_breaking(concentration, n_draws=2, random_state=seed)
        for weights, ax in zip(sticks, axes[seed, 1:], strict=True):
            plot_stick_weights(weights, title=f"concentration {concentration:.0f}", ax=ax)
    priors = {"Dirichlet process": DirichletProcess(1.0), "Pitman-Yor, discount 0.5": PitmanYor(1.0, 0.5)}
    for name, prior in priors.items():
        seats = sample_restaurant(
            N_CUSTOMERS, 1.0, getattr(prior, "discount", 0.0), n_draws=5, random_state=0
        )
        expected = [expected_n_clusters(prior, n) for n in range(1, N_CUSTOMERS + 1)]
        plot_table_growth(table_growth(seats), expected=expected, label=name, ax=axes[1, 0])
    return figure


def draw_animals() -> plt.Figure:
    """Four views of CrossCat on the animals, after Murphy's figure 25.20 (whose 22 animals are others)."""
    model, names, frame, _ = fit_real("animals_50x85")
    found = (model.view_labels_.max(axis=0) + 1).tolist()
    kept = json.loads((ROOT / "benchmarks/results/crosscat.json").read_text(encoding="utf-8"))
    if found != kept["summary"]["tables"]["animals_50x85"]["clusters"]:
        print(f"clusters of the views {found} are not those of the result file", file=sys.stderr)
    axes = plot_views(model, frame, row_names=[str(name).replace("+", " ") for name in names])
    return axes[0].figure


def draw_grain() -> plt.Figure:
    """The levels of the answer of docs/grain.md."""
    model = Mixture(random_state=0).fit(load_wine(as_frame=True).data)
    return plot_grain(model).figure


if __name__ == "__main__":
    sys.exit(main())
