"""Levels of a grain: their summaries, their picture, and a model at another level."""

import itertools

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.patches import PathPatch, Rectangle  # noqa: E402

from partita import Consensus, Voting  # noqa: E402
from partita.plotting import plot_grain  # noqa: E402
from partita.posterior.grain import SUPPORTS, Grain  # noqa: E402
from partita.summaries import AtLevel, alternatives_table, grain_levels, grain_of  # noqa: E402
from partita.summaries.context import build_context  # noqa: E402
from partita.summaries.grains import alternatives_lines  # noqa: E402


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def ensemble(seed, groups=6, n=120, members=8):
    rng = np.random.default_rng(seed)
    z = np.arange(n) % groups
    return np.where(rng.random((n, members)) < 0.3, rng.integers(groups, size=(n, members)), z[:, None])


@pytest.fixture(scope="module")
def model(global_random_seed):
    return Consensus(random_state=global_random_seed).fit(ensemble(global_random_seed))


@pytest.fixture
def random_grain(rng):
    """A random tree over 9 groups of rows with random weights."""
    sizes, G = rng.integers(1, 9, 9).astype(float), 9
    alive, joins = list(range(G)), []
    for t in range(G - 1):
        a, b = sorted(int(k) for k in rng.choice(alive, 2, replace=False))
        joins.append((a, b))
        alive = [k for k in alive if k not in (a, b)] + [G + t]
    labels = np.repeat(np.arange(G), sizes.astype(int))
    return Grain(
        labels, np.array(joins), np.arange(8.0), rng.random(9), sizes, "dissimilarity", next(iter(SUPPORTS))
    )


def test_levels_are_those_of_the_model(model):
    found = grain_levels(model, 6)
    counts = [level.n_clusters for level in found.levels]
    assert counts == sorted(set(counts)) and model.n_clusters_ in counts
    assert {one.n_clusters for one in model.alternatives_} <= set(counts)
    assert {level.name for level in found.levels} - {""} == {one.name for one in model.alternatives_}
    for level in found.levels:
        labels = model.at(level.n_clusters).labels
        assert (level.groups[found.row_groups] == labels).all()
        assert level.sizes.tolist() == np.bincount(labels).tolist()
        assert level.support == pytest.approx(model.at(level.n_clusters).support)
    assert found.same_as_answer == bool((model.at(model.n_clusters_).labels == model.labels_).all())
    assert found.answer == model.n_clusters_


def test_flows_are_the_rows_that_two_groups_share(model):
    found = grain_levels(model)
    for at, (level, finer) in enumerate(zip(found.levels, found.levels[1:], strict=False)):
        a, b = model.at(level.n_clusters).labels, model.at(finer.n_clusters).labels
        expected = np.zeros((level.n_clusters, finer.n_clusters))
        np.add.at(expected, (a, b), 1)
        np.testing.assert_array_equal(found.flows(at), expected)
        assert ((found.flows(at) > 0).sum(axis=0) == 1).all()  # nested


def test_boxes_lie_over_their_parts_and_never_overlap(random_grain):
    found = grain_levels(None, 8, grain=random_grain)
    boxes = found.boxes(0.9, 0.001)
    for at, (level, own) in enumerate(zip(found.levels, boxes, strict=True)):
        assert own.shape == (level.n_clusters, 2) and (own[:, 1] > 0).all()
        order = np.argsort(own[:, 0])
        ends, starts = own[order].sum(axis=1), own[order, 0]
        assert starts[0] >= -1e-12 and ends[-1] <= 1 + 1e-12 and (ends[:-1] <= starts[1:] + 1e-12).all()
        if at + 1 < len(boxes):
            for k, parts in enumerate(found.flows(at) > 0):
                below = boxes[at + 1][parts]
                assert below[:, 0].min() - 1e-9 <= own[k, 0]
                assert own[k].sum() <= below.sum(axis=1).max() + 1e-9
    last = found.levels[-1].sizes
    np.testing.assert_allclose(boxes[-1][:, 1] / boxes[-1][:, 1].sum(), last / last.sum(), atol=0.005)


def test_the_picture_has_a_box_per_group_and_a_band_per_part(model):
    ax = plot_grain(model, max_levels=5)
    found = grain_levels(model, 5)
    boxes = [patch for patch in ax.patches if isinstance(patch, Rectangle) and patch.get_fill()]
    bands = [patch for patch in ax.patches if isinstance(patch, PathPatch)]
    assert len(boxes) == sum(level.n_clusters for level in found.levels)
    assert len(bands) == sum(level.n_clusters for level in found.levels[1:])
    (frame,) = [patch for patch in ax.patches if isinstance(patch, Rectangle) and not patch.get_fill()]
    around = frame.get_bbox()
    inside = [
        box for box in boxes if around.contains(*box.get_bbox().min) and around.contains(*box.get_bbox().max)
    ]
    assert len(inside) == sum(around.overlaps(box.get_bbox()) for box in boxes) == model.n_clusters_
    ticks = [tick.get_text() for tick in ax.get_yticklabels()]
    assert ticks == [f"{level.n_clusters} {level.name}".strip() for level in found.levels]
    sizes = np.bincount(model.labels_)
    shown = [text.get_text() for text in ax.texts]
    assert f"1\n{sizes[0]:,}" in shown and "0" not in {text.split("\n")[0] for text in shown}
    shades = iter([box.get_facecolor()[:3] for box in boxes])
    of_levels = [set(itertools.islice(shades, level.n_clusters)) for level in found.levels]
    assert all(len(own) == 1 for own in of_levels), "one color for each level"
    brightness = np.array([np.dot(next(iter(own)), [0.299, 0.587, 0.114]) for own in of_levels])
    by_support = np.argsort([level.support for level in found.levels])
    assert (np.diff(brightness[by_support]) <= 1e-9).all() and np.ptp(brightness) > 0.02


def test_a_grain_of_its_own_and_models_without_one(random_grain):
    fitted = Voting(2, random_state=0).fit(ensemble(0))
    assert grain_of(fitted) is None and grain_levels(fitted) is None and alternatives_table(fitted) == []
    with pytest.raises(ValueError, match="this Voting has no grain"):
        plot_grain(fitted)
    ax = plot_grain(fitted, grain=random_grain, max_levels=4)
    assert len(ax.get_yticks()) >= 3 and "framed" not in ax.get_title(loc="left")
    shown = [int(tick.get_text().split()[0]) for tick in ax.get_yticklabels()]
    gaps = [at + 0.5 for at, (K, finer) in enumerate(itertools.pairwise(shown)) if finer > K + 1]
    assert gaps and ax.get_yticks(minor=True).tolist() == gaps
    assert build_context(fitted).grain is None and build_context(fitted).alternatives == []


def test_the_table_of_alternatives(model):
    rows = alternatives_table(model)
    assert [(row.name, row.n_clusters) for row in rows] == [
        (one.name, one.n_clusters) for one in model.alternatives_
    ]
    for row in rows:
        assert row.sizes == np.bincount(model.at(row.name).labels).tolist()
        assert row.is_answer == (row.n_clusters == model.n_clusters_)
    for before, row in itertools.pairwise(rows):
        a, b = model.at(before.name).labels, model.at(row.name).labels
        parts = {k: tuple(np.unique(b[a == k]).tolist()) for k in range(before.n_clusters)}
        assert row.splits == {k: found for k, found in parts.items() if len(found) > 1}
    lines = alternatives_lines(rows)
    assert len(lines) == len(rows) + 1 and sum("(the answer)" in line for line in lines) <= 1
    assert alternatives_lines([]) == []


def test_a_model_at_another_level(model):
    for K in (2, 3):
        there, level = AtLevel(model, K), model.at(K)
        assert (there.labels_ == level.labels).all() and there.n_clusters_ == K
        np.testing.assert_array_equal(there.confidence_, level.confidence)
        assert there.independent_members_ == model.independent_members_
        assert not hasattr(there, "coclustering") and not hasattr(there, "predict_proba")


def test_a_context_at_another_level(model, global_random_seed):
    table = np.random.default_rng(global_random_seed).normal(size=(120, 2)) + model.labels_[:, None]
    truth = np.arange(120) % 6
    context = build_context(model, table=table, truth=truth, at="coarse")
    K = model.alternatives_[0].n_clusters
    assert context.level == K and context.given is model
    labels = model.at(K).labels
    assert context.clusters.sizes.tolist() == np.bincount(labels).tolist()
    expected = np.zeros((6, K))
    np.add.at(expected, (truth, labels), 1)
    np.testing.assert_array_equal(context.agreement.table, expected)
    mean = float(context.clusters.traits[0][0].here.split(" ")[0].replace(",", ""))
    column = int(context.clusters.traits[0][0].column[-1])
    assert mean == pytest.approx(table[labels == 0, column].mean(), abs=0.06, rel=0.02)
    # votes do not depend on the clusters of the answer, so that they may judge other clusters
    assert (np.diff(context.pairs.labels) >= 0).all()
    i, j = context.pairs.objects[[3, 50]]
    assert context.pairs.votes[3, 50] == pytest.approx(
        (model._rows[model._row_of[i]] == model._rows[model._row_of[j]]).mean()
    )
    with pytest.raises(ValueError, match="no alternative 'huge'"):
        build_context(model, at="huge")
    with pytest.raises(ValueError, match="has no grain"):
        build_context(Voting(2, random_state=0).fit(ensemble(0)), at=2)
