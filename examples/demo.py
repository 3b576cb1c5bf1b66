"""Example: 600 visitors of a museum, eight columns of four kinds, all with missing cells. Which groups are there?

python examples/demo.py                      writes the folder demo/ and says what is in it
python examples/demo.py --picture PATH.png   only draws the picture
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np

from partita import Mixture, load
from partita.datasets import load_visitors
from partita.metrics import adjusted_rand
from partita.plotting import plot_confidence, plot_profiles, plot_scatter
from partita.report import write_report

KINDS = {"rooms_visited": "count", "photos_taken": "count"}  # the kinds of the other columns are inferred


def main() -> None:
    parser = argparse.ArgumentParser(description="An example of partita.")
    parser.add_argument("--folder", type=Path, default=Path("demo"), help="where to write (default: demo)")
    parser.add_argument("--picture", type=Path, help="only draw the picture, to this file")
    options = parser.parse_args()

    visitors = load_visitors(as_frame="pandas")
    if not options.picture:
        print(f"{len(visitors.target)} visitors of a museum, {visitors.frame.shape[1]} columns, "
              f"{int(visitors.frame.isna().sum().sum())} cells missing. Which groups are there?")  # fmt: skip
        print("(The first fit on a machine compiles the model, which takes about half a minute.)\n")
    start = time.perf_counter()
    model = Mixture(kinds=KINDS, random_state=0).fit(visitors.frame)
    if options.picture:
        draw(model, visitors.frame, options.picture)
        return
    print(f"Fitted in {time.perf_counter() - start:.1f} s.\n\n{model.summary_}\n")
    unsure = int((model.confidence_ < 0.8).sum())
    print(f"{unsure} visitors are together with the others of their group in less than 80% of the draws.\n")
    print(
        f"The table was drawn from {len(visitors.target_names)} planted groups; the model did not see them."
    )
    print(
        f"Agreement (adjusted Rand index, 1 is perfect): {adjusted_rand(visitors.target, model.labels_):.3f};"
    )
    print("someone who knows the true model of every group reaches 0.95.\n")
    for path, what in save(model, visitors, options.folder):
        print(f"  {path!s:24} {what}")


def save(model: Mixture, visitors, folder: Path) -> list[tuple[Path, str]]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text(
        "*\n", encoding="utf-8"
    )  # what is made here stays out of the repository
    truth = np.array(visitors.target_names)[visitors.target]
    write_report(model, folder / "report.html", X=visitors.frame, title="Visitors of a museum", truth=truth)
    draw(model, visitors.frame, folder / "clusters.png")
    model.save(folder / "model.npz")
    assert (load(folder / "model.npz").labels_ == model.labels_).all()
    with open(folder / "labels.csv", "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["row", "group", "confidence"])
        rows.writerows(
            [i, int(k) + 1, f"{c:.4f}"] for i, (k, c) in enumerate(zip(model.labels_, model.confidence_))
        )
    return [
        (folder / "report.html", "the whole story: open it in a browser"),
        (folder / "clusters.png", "the groups in a picture"),
        (folder / "labels.csv", "the group of each visitor and how sure it is"),
        (folder / "model.npz", "the model; partita.load() reads it"),
    ]


def draw(model: Mixture, frame, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained", width_ratios=[1.25, 1.1, 1])
    plot_scatter(model, frame, "spend", "photos_taken", ax=axes[0]).set_title(
        f"{model.n_clusters_} groups of visitors", loc="left"
    )
    plot_profiles(model, "ticket", ax=axes[1]).set_title("ticket, by group", loc="left")
    plot_confidence(model, ax=axes[2]).set_title("how sure, visitor by visitor", loc="left")
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
