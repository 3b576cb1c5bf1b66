"""A page for every kind of clustering: consensus of all sorts, ensembles, views, trees, blocks, and strangers."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import partita
from partita import Consensus, EnsembleClustering, EvidenceAccumulation
from partita.report import page as page_module
from partita.report import write_report

NASTY = "<script>alert('x')</script>"


def text_of(path):
    page = re.sub(r"<(style|script)>.*?</\1>", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


@pytest.fixture(scope="module")
def labels():
    rng = np.random.default_rng(0)
    z = np.repeat([0, 1, 2], 20)
    return z, np.where(rng.random((60, 8)) < 0.12, rng.integers(3, size=(60, 8)), z[:, None])


def test_a_consensus_opens_with_the_answer(labels, tmp_path):
    z, Y = labels
    model = Consensus(random_state=0).fit(Y)
    text = text_of(write_report(model, tmp_path / "c.html", X=Y, truth=z))
    assert f"{model.n_clusters_} groups" in text and "in 60 objects, from 8 clusterings" in text
    assert f"as much evidence as about {round(model.independent_members_)} independent clustering" in text
    assert "uncertain" in text and "adjusted Rand index" in text
    for title in (
        "Number of groups",
        "Co-clustering",
        "Confidence",
        "The members",
        "How to repeat the fit",
    ):
        assert title in text
    assert (
        "Consensus(random_state=0).fit(X)" in text
        and "is not the probability that the label is right" in text
    )


def test_uncertain_objects_of_a_consensus_are_those_with_a_rival(labels, tmp_path):
    from partita.summaries import pair_map
    from partita.summaries.uncertainty import rival_ratios

    _, Y = labels
    Y = Y.copy()
    Y[7] = np.arange(8) % 2  # between two clusters
    model = EvidenceAccumulation(3).fit(Y)
    n = int((rival_ratios(pair_map(model, Y)) >= 0.5).sum())
    assert n >= 1
    text = text_of(write_report(model, tmp_path / "c.html", X=Y))
    assert f"{n} of 60 objects ({100 * n / 60:.0f}%) {'is' if n == 1 else 'are'} uncertain" in text
    least = text[text.index("least certain objects") :]
    assert least.index(" 7 ") < 120  # first in the table


@pytest.mark.parametrize(
    "name",
    [
        n
        for n in partita.__all__
        if n.isupper() or n in ("Consensus", "MixtureConsensus", "Voting", "EvidenceAccumulation")
    ],
)
def test_every_consensus_has_a_page(name, labels, tmp_path):
    extras = {"CSPA": "pymetis", "MCLA": "pymetis", "HBGF": "pymetis", "HGPA": "mtkahypar"}
    if name in extras:
        pytest.importorskip(extras[name])
    cls = getattr(partita, name)
    if not hasattr(cls, "_fit_labelings"):
        pytest.skip(f"{name} is no consensus")
    _, Y = labels
    options = {
        key: value for key, value in {"n_clusters": 3, "random_state": 0}.items() if key in cls().get_params()
    }
    quick = {"n_chains": 1, "n_draws": 5, "burn_in": 2}
    options |= {key: value for key, value in quick.items() if key in cls().get_params()}
    with pytest.warns() if name == "NBCE" else __import__("contextlib").nullcontext():
        model = cls(**options).fit(Y)
    bare = text_of(write_report(model, tmp_path / "bare.html"))
    full = text_of(write_report(model, tmp_path / "full.html", X=Y))
    for text in (bare, full):
        assert f"{model.n_clusters_} group" in text and "from 8 clusterings" in text and "The members" in text
    assert "Co-clustering" in full and "Agreement is the adjusted Rand index" in full
    assert " nan" not in full.lower().replace("nano", "")


def test_an_ensemble_has_members_and_columns(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        rng.normal(size=(60, 2)) + np.repeat([[0, 0], [7, 7], [0, 9]], 20, axis=0), columns=["u", NASTY]
    )
    model = EnsembleClustering(n_members=6, random_state=0).fit(X)
    path = write_report(model, tmp_path / "e.html", X=X)
    text = text_of(path)
    assert "in 60 rows and 2 columns, from 6 clusterings" in text
    assert "What distinguishes each group" in text and "member 0" in text
    page = path.read_text(encoding="utf-8")
    assert NASTY not in page and page.count("<script") == 1


def test_labels_may_be_described_by_another_table(labels, tmp_path):
    z, Y = labels
    table = pd.DataFrame(
        {"size": z * 3.0 + np.random.default_rng(0).normal(size=60), "noise": np.arange(60) % 7 + 0.5}
    )
    names = [f"case {i}" for i in range(60)]
    model = Consensus(random_state=0).fit(Y)
    text = text_of(write_report(model, tmp_path / "t.html", table=table, names=names))
    assert "The columns that distinguish the groups best: size" in text and "case 1" in text
    with pytest.raises(ValueError, match="table has 59 rows and the model was fitted to 60"):
        write_report(model, tmp_path / "x.html", table=table.iloc[:59])
    with pytest.raises(ValueError, match="one name per object, 60 in all"):
        write_report(model, tmp_path / "x.html", names=["a"])


def test_odd_consensuses_are_no_error(tmp_path):
    rng = np.random.default_rng(0)
    one = Consensus(random_state=0).fit(np.repeat([0, 1], 5)[:, None])  # confidence is NaN
    assert "2 groups" in text_of(write_report(one, tmp_path / "one.html"))
    same = Consensus(random_state=0).fit(np.repeat([[0, 1]], 3, axis=0).T.repeat(4, axis=0))
    assert "as much evidence as about 1 independent clustering" in text_of(
        write_report(same, tmp_path / "same.html")
    )
    with pytest.warns(UserWarning):
        none = Consensus(random_state=0).fit(rng.integers(3, size=(40, 5)))
    text = text_of(write_report(none, tmp_path / "none.html"))
    assert "1 group" in text and "no consensus" in text[: text.index("Sizes of the groups")]


def test_soft_members_are_no_error(tmp_path):
    hard = np.repeat([0, 1], 10)
    members = {"soft": np.eye(2)[hard] * 0.8 + 0.1, "hard": hard, "again": 1 - hard}
    model = EvidenceAccumulation().fit(members)
    assert "from 3 clusterings" in text_of(write_report(model, tmp_path / "s.html", X=members))


def test_views_come_with_their_columns_and_dependence(tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.integers(3, size=(2, 50))
    X = pd.DataFrame(
        {
            "u": a * 4 + rng.normal(size=50),
            NASTY: a * 4.0,
            "w": b * 4 + rng.normal(size=50),
            "v": b * 4 + rng.normal(size=50),
            "alone": b * 4 + rng.normal(size=50),
            "none": rng.normal(size=50),
        }
    )
    P = np.array([[1.0, 0, 0, 0], [0.9, 0.1, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    from partita.table import read_table

    model = SimpleNamespace(
        view_labels_=np.stack([a, b, b % 2, 0 * a], axis=1), feature_views_=P, dependence_=P @ P.T,
        schema_=read_table(X).schema,
        n_views_posterior_={2: 0.9, 3: 0.1}, n_clusters_posterior_=[{3: 0.7, 4: 0.3}, {3: 1.0}, {2: 1.0}, {1: 1.0}],
    )  # fmt: skip
    path = write_report(model, tmp_path / "v.html", X=X)
    text = text_of(path)
    assert "2 views , most likely 2 (90%) or 3 (10%), in 50 rows and 6 columns" in text
    assert "View 1: 3 groups by u" in text and "Columns without groups of rows: none ." in text
    assert "Columns with groups of their own, in no view: alone (2 groups) ." in text and "view 3" not in text
    assert "Dependence of the columns" in text and "3 (70%), 4 (30%)" in text
    page = path.read_text(encoding="utf-8")
    assert 'aria-label="Cells of view 2"' in page and 'data-k="1-2"' in page and NASTY not in page
    assert "View 3" not in page[page.index("What distinguishes each group") :]


def test_a_tree_shows_its_odds(tmp_path):
    Z = np.array([[0, 1, 1.0, 2], [2, 3, 2.0, 2], [4, 5, 5.0, 4]])
    model = SimpleNamespace(
        labels_=np.array([0, 0, 1, 1]), n_clusters_=2, linkage_=Z, log_odds_=np.array([3.0, 2.0, -4.0])
    )
    path = write_report(model, tmp_path / "t.html")
    page = path.read_text(encoding="utf-8")
    assert (
        page.count('class="link"') == 2 and page.count('class="link weak"') == 1 and "log odds -4.00" in page
    )
    assert "The odds are against the dashed merges" in page


def test_blocks_are_shown(tmp_path):
    model = SimpleNamespace(
        labels_=np.array([0, 0, 1]), n_clusters_=2, row_labels_=np.array([0, 0, 1]), column_labels_=np.array([0, 1, 1]),
        confidence_=np.array([0.9, 0.5, 1.0]),
    )  # fmt: skip
    path = write_report(model, tmp_path / "b.html", X=[[1, 0, 0], [1, 1, 0], [0, 1, 1]])
    text = text_of(path)
    assert (
        "The columns form 2 groups." in text and "1 of 3 rows (33%) is uncertain : their confidence" in text
    )
    assert "rows of group 1 (2), columns of group 2 (2): 0.25" in path.read_text(encoding="utf-8")


def test_a_stranger_with_labels_has_a_page(tmp_path):
    from sklearn.cluster import KMeans

    X = np.random.default_rng(0).normal(size=(30, 2))
    model = KMeans(2, n_init=1, random_state=0).fit(X)
    model.n_clusters_ = 2
    assert "What distinguishes each group" in text_of(write_report(model, tmp_path / "k.html", X=X))
    text = text_of(write_report(model, tmp_path / "k.html"))
    assert "2 groups (the requested number) in 30 rows and 2 columns" in text
    assert "KMeans(n_clusters=2, n_init=1, random_state=0).fit(X)" in text


class Vast:
    """A million objects, 500 clusters, a thousand members, with nothing behind them."""

    def __init__(self, N=1_000_000, K=500, M=1000):
        rng = np.random.default_rng(0)
        self.labels_ = np.minimum((K * rng.random(N) ** 2).astype(int), K - 1)
        self.confidence_, self.n_clusters_ = rng.random(N), K
        self.member_weights_, self.n_features_in_ = rng.random(M), M
        self.n_clusters_posterior_ = dict.fromkeys(range(300, 700), 1 / 400)
        self.n_clusters_scores_ = {k: 1 / k for k in range(2, 2000)}
        self.independent_members_, self.explained_ = 12.3, 0.4

    def coclustering(self, i, j):
        return np.where(self.labels_[i] == self.labels_[j], 0.9, 0.05)


def test_vast_models_are_sampled_cut_and_it_says_so(tmp_path):
    path = write_report(Vast(), tmp_path / "vast.html")
    assert path.stat().st_size < 1_000_000
    text = text_of(path)
    for said in (
        "200 of 1,000,000 objects are shown, evenly spaced", "300 of 1,000,000 objects are shown, evenly spaced",
        "The 120 largest of 500 groups are shown",
        "The 60 members with the largest weights are listed, of 1,000 in all",
        "No object of the 200 examined is",
        "360 less probable numbers are not shown", "300 of 1,000 are shown, evenly spaced",
    ):  # fmt: skip
        assert said in text, said


def test_a_page_over_the_limit_leaves_the_largest_sections_out(labels, tmp_path, monkeypatch):
    _, Y = labels
    model = Consensus(random_state=0).fit(Y)
    path = write_report(model, tmp_path / "whole.html", X=Y)
    size = path.stat().st_size
    monkeypatch.setattr(page_module, "MAX_BYTES", 130_000)
    small = write_report(model, tmp_path / "small.html", X=Y)
    assert small.stat().st_size <= 130_000 < size + 130_000
    assert "This section is left out: the page would be larger than" in text_of(
        small
    ) and "3 groups" in text_of(small)


def test_unfitted_models_are_refused(tmp_path):
    with pytest.raises(Exception, match="Consensus is not fitted"):
        write_report(Consensus(), tmp_path / "x.html")
    assert list(tmp_path.iterdir()) == []


def test_members_may_come_as_a_mapping(labels, tmp_path):
    _, Y = labels
    members = {f"run {m}": column for m, column in enumerate(Y.T)}
    model = Consensus(random_state=0).fit(members)
    text = text_of(write_report(model, tmp_path / "m.html", X=members))
    assert "run 3" in text and "Similarity of the members" in text


def test_views_without_columns_of_their_own(tmp_path):
    rng = np.random.default_rng(0)
    Y = rng.integers(3, size=(40, 2))
    model = SimpleNamespace(
        view_labels_=Y, objective_trace_=np.array([3.0, 2.0]), confidence_=np.ones((40, 2))
    )
    text = text_of(write_report(model, tmp_path / "v.html", table=Y * 3.0 + rng.normal(size=(40, 2))))
    assert "2 views in 40 rows: different groupings of the same rows. View 1: 3 groups." in text
    assert "View 2 group 1: " in text and text.count("Columns by groups") == 2


def test_p_of_k_is_called_what_it_is(tmp_path):
    model = SimpleNamespace(labels_=np.array([0, 1]), n_clusters_=2, n_clusters_posterior_={2: 0.7, 3: 0.3})
    text = text_of(write_report(model, tmp_path / "m.html"))
    assert "most likely 2 (70%) or 3 (30%)" in text and "under the model" in text and "members" not in text
    model.n_clusters_posterior_ = {2: 1.0}
    assert "the only number with a positive probability" in text_of(write_report(model, tmp_path / "m.html"))


def test_a_chain_without_trace_does_not_rise_to_an_objective(tmp_path):
    model = SimpleNamespace(
        labels_=np.array([0, 1]),
        n_clusters_=2,
        inference="gibbs",
        objective_trace_=np.array([-5.0, -4.0, -4.5]),
    )
    text = text_of(write_report(model, tmp_path / "g.html"))
    assert "the log joint of one chain by iteration, -4.50 at the end" in text and "increased" not in text
