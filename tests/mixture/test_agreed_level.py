"""The level of the grain that agrees best with an ensemble of k-means clusterings."""

import numpy as np
import pytest

import partita
from partita import Mixture
from partita.cli import clustering
from partita.fitting.second_opinion import SecondOpinion
from partita.metrics import adjusted_rand
from partita.posterior import Grain
from partita.posterior.grain import checked_grain
from partita.summaries import alternatives_table, grain_levels
from partita.summaries.grains import alternatives_lines
from partita.table import read_file

pytestmark = pytest.mark.filterwarnings("ignore::partita.estimator.DataWarning")
QUICK = {"n_chains": 2, "n_draws": 20, "burn_in": 10}


def four_groups(rng, n=160):
    """Two groups side by side, and two others far from them."""
    z = np.arange(n) % 4
    return rng.normal(size=(n, 2)) + np.array([[0, 0], [9, 0], [40, 60], [60, 40]])[z], z


@pytest.fixture(scope="module")
def model(global_random_seed):
    X, _ = four_groups(np.random.default_rng(global_random_seed))
    return Mixture(random_state=global_random_seed, **QUICK).fit(X)


def test_the_level_nearest_to_the_members_is_found(rng):
    """Six groups of ten rows, joined two by two; the members have the three pairs, one with an error."""
    labels = np.repeat(np.arange(6), 10)
    joins = np.array([[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]])
    grain = Grain(labels, joins, np.zeros(5), np.zeros(6), np.full(6, 10.0), "confusion", "probability")
    rows = np.sort(rng.choice(60, 50, replace=False))
    members = np.stack([labels[rows] // 2, labels[rows] // 2]).astype(np.int16)
    members[1, 0] = 2 - members[1, 0]
    opinion = SecondOpinion(rows, labels[rows].astype(np.int64), members)
    found = opinion.agreement_by_level(grain)
    expected = [
        np.mean([adjusted_rand(grain.at(K)[rows], member) for member in members]) for K in range(1, 7)
    ]
    np.testing.assert_allclose(found, expected)
    agreed = grain._replace(agreement=found)
    assert agreed.agreed == 3 and agreed.n_clusters_at("agreed") == 3
    assert opinion.agreement(labels) == 1.0
    assert grain.agreed is None


def test_of_equal_levels_the_one_with_fewer_groups_counts(rng):
    joins = np.array([[0, 1], [2, 3]])
    grain = Grain(np.arange(3), joins, np.zeros(2), np.zeros(3), np.ones(3), "confusion", "probability")
    assert grain._replace(agreement=np.array([0.9, 0.5, 0.5])).agreed == 2  # one group is no answer
    with pytest.raises(ValueError, match="agreement of the grain"):
        checked_grain(grain._replace(agreement=np.zeros(2)), 3)


def test_the_level_is_offered(model):
    opinion, grain = model._second_opinion, model.grain_
    np.testing.assert_array_equal(grain.agreement, opinion.agreement_by_level(grain))
    assert model.diagnostics_.second_opinion == opinion.agreement(model.labels_)
    level = model.at("agreed")
    assert level.n_clusters == grain.agreed == 2 + np.argmax(grain.agreement[1:])
    (row,) = [row for row in alternatives_table(model) if row.agreement is not None]
    assert row.n_clusters == grain.agreed and row.agreement == grain.agreement[grain.agreed - 1]
    (line,) = [
        line for line in alternatives_lines(alternatives_table(model)) if "k-means clusterings" in line
    ]
    assert f"{row.n_clusters:8d}" in line and ("the answer" in line) == row.is_answer
    assert grain.agreed in [level.n_clusters for level in grain_levels(model, 2).levels]


def test_a_level_between_the_alternatives_is_a_line_of_its_own(model):
    levels = {one.n_clusters for one in model.alternatives_}
    for K in range(2, model.grain_.n_groups + 1):
        other = Mixture()
        other.__dict__ |= vars(model)
        other._grain = model.grain_._replace(agreement=np.eye(model.grain_.n_groups)[K - 1])
        rows = alternatives_table(other)
        assert [row.n_clusters for row in rows] == sorted(levels | {K})
        (found,) = [row for row in rows if row.n_clusters == K]
        assert found.agreement == 1.0 and (found.name == "agreed") == (K not in levels)
        assert found.sizes == np.bincount(model.at(K).labels).tolist()


def test_saved_models_and_later_batches(model, tmp_path, rng):
    model.save(tmp_path / "model")
    again = partita.load(tmp_path / "model")
    assert again.diagnostics_.second_opinion == model.diagnostics_.second_opinion
    np.testing.assert_array_equal(again.grain_.agreement, model.grain_.agreement)
    again.partial_fit(four_groups(rng)[0])
    assert again.grain_.agreement is None  # the rows of the ensemble are those of the first fit


def test_fits_without_a_second_opinion_have_no_such_level(rng):
    X, _ = four_groups(rng)
    fitted = Mixture(inference="vb", random_state=0).fit(X)
    assert fitted.grain_.agreement is None
    with pytest.raises(ValueError, match="no alternative 'agreed'"):
        fitted.at("agreed")


def test_the_command_writes_the_level(tmp_path, rng):
    X, _ = four_groups(rng)
    path = tmp_path / "table.csv"
    np.savetxt(path, X, delimiter=",", header="a,b", comments="")
    found = clustering.cluster(
        path, out=tmp_path / "found", grain="agreed", verbose=False, n_draws=20, burn_in=10
    )
    fitted = partita.load(tmp_path / "found" / "model.npz")
    level = fitted.at("agreed")
    written = read_file(tmp_path / "found" / "labels.csv").columns
    assert np.array_equal(np.asarray(written["group"], int), level.labels + 1)
    (own,) = [one for one in found.figures["alternatives"] if one["agreement"] is not None]
    assert own["n_clusters"] == level.n_clusters
    assert own["name"] in written and "k-means clusterings" in found.table
