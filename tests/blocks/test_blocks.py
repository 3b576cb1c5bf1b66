"""RelationalBlocks as an estimator: planted relations, exact predictions, storage, runs."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

from partita import RelationalBlocks, load
from partita.dispatch import interpreted
from partita.families import Bernoulli
from partita.families.rows import log_marginals
from partita.labels import set_partitions
from partita.partitions import DirichletProcess, log_eppf
from partita.testing import effective_size

pytestmark = pytest.mark.filterwarnings("ignore::partita.estimator.DataWarning")


def test_planted_blocks_of_yes_and_no(blocks, planted, same_partition):
    """No false alarm in 200 fresh seeds; the least certain row had confidence 0.78."""
    X, rows, columns = planted
    model = blocks().fit(X)
    same_partition(model.row_labels_, rows)
    same_partition(model.column_labels_, columns)
    assert (model.n_row_clusters_, model.n_column_clusters_) == (2, 3)
    assert min(model.n_row_clusters_posterior_) == 2  # no draw joins what is apart
    assert sum(model.n_column_clusters_posterior_.values()) == pytest.approx(1.0)
    assert model.row_confidence_.min() > 0.6 and model.column_confidence_.shape == (18,)
    assert model.block_values_.shape == (1, 2, 3, 2)
    truth = X[model.row_labels_ == 0][:, model.column_labels_ == 0].mean()
    assert model.block_values_[0, 0, 0, 1] == pytest.approx(truth, abs=0.05)
    assert np.array_equal(model.labels_, model.row_labels_)
    assert np.array_equal(model.fit_predict(X), model.labels_)


@pytest.mark.parametrize("relation", ["directed", "undirected"])
def test_planted_square_relation(blocks, relation, same_partition):
    rng = np.random.default_rng(1)
    z = np.repeat([0, 1, 2], 6)
    p = np.array([[0.9, 0.1, 0.1], [0.9, 0.1, 0.9], [0.1, 0.1, 0.9]])  # the columns alone would not do
    if relation == "undirected":
        p = np.array([[0.9, 0.1, 0.1], [0.1, 0.1, 0.9], [0.1, 0.9, 0.9]])
    X = (rng.random((18, 18)) < p[z][:, z]).astype(float)
    if relation == "undirected":
        X = np.triu(X) + np.triu(X, 1).T
    model = blocks(relation=relation).fit(X)
    same_partition(model.row_labels_, z)
    assert np.array_equal(model.row_labels_, model.column_labels_)
    assert model.row_trace_ is model.column_trace_
    assert model.predict(X[:3]).shape == (3,)


def test_several_relations_share_one_partition(blocks, same_partition):
    """Each relation separates only one of three groups from the others, and has its own parameters."""
    rng = np.random.default_rng(2)
    z = np.repeat([0, 1, 2], 6)
    first, second = np.where(z == 0, 0, 1), np.where(z == 2, 1, 0)
    P = np.array([[0.9, 0.1], [0.1, 0.9]])
    X = np.stack([rng.random((18, 18)) < P[g][:, g] for g in (first, second)]).astype(float)
    X[1, 0, 3] = np.nan
    model = blocks(relation="directed").fit(X)
    same_partition(model.row_labels_, z)
    assert model.block_values_.shape == (2, 3, 3, 2)
    assert len(model.missing_cells(0)) == 0 and model.missing_cells(1).tolist() == [[0, 3]]
    assert model.predict_cells(relation=1).tolist() == [1.0]
    same_partition(blocks(relation="directed").fit(list(X)).row_labels_, z)
    assert model.predict_proba(X[:, :4]).shape == (4, 3)
    with pytest.raises(ValueError, match="X holds 1 relations, but the model was fitted to 2"):
        model.predict(X[0])
    with pytest.raises(ValueError, match="relation is 2: pass a number from 0 to 1"):
        model.predict_cells(relation=2)


def test_measurements_keep_their_unit(blocks, planted, same_partition, global_random_seed):
    X, rows, _ = planted
    pattern = (X.mean(axis=0) > 0.7) | ((X.mean(axis=0) > 0.3) & (rows[:, None] == 0))
    Y = 1e9 + 40.0 * pattern + np.random.default_rng(global_random_seed).normal(size=X.shape)
    Y[0, 0] = np.nan
    model = blocks().fit(Y)
    assert model.family_name_ == "gaussian"
    same_partition(model.row_labels_, rows)
    assert model.predict_cells()[0] == pytest.approx(1e9 + 40.0, abs=6.0)
    # the density of a cell in the user's units integrates to one
    grid = np.linspace(1e9 - 400, 1e9 + 440, 3001)
    scores = model.score_cells(grid, np.zeros((len(grid), 2), int))
    assert np.exp(scores).sum() * (grid[1] - grid[0]) == pytest.approx(1.0, abs=0.02)
    assert model.score_cells([np.nan], [[0, 0]])[0] == pytest.approx(0.0, abs=1e-9)


def test_text_and_levels(blocks, planted, same_partition):
    """All columns share their levels."""
    X, rows, _ = planted
    words = np.where(X == 1, "yes", "no").astype(object)
    words[:, 0] = np.where(rows == 0, "maybe", "no")
    words[3, 2] = None
    model = blocks().fit(words)
    assert model.family_name_ == "categorical" and model.levels_ == [("maybe", "no", "yes")]
    same_partition(model.row_labels_, rows)
    assert model.predict_cells_proba().shape == (1, 3)
    assert model.predict_cells()[0] in ("yes", "no", "maybe")
    assert np.exp([model.score_cells([w], [[3, 2]])[0] for w in model.levels_[0]]).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("family", ["poisson", "exponential"])
def test_other_families(family, global_random_seed):
    """Cells vary less than the family expects, so that no row may rightly be a cluster of its own.

    No false alarm in 200 fresh seeds per family, with predictions between 1.95 and 2.22; cells drawn from the family
    gave more than 2 x 2 blocks in a quarter of them (exponential).
    """
    rng = np.random.default_rng(global_random_seed)
    X = np.kron([[2.0, 60.0], [60.0, 2.0]], np.ones((6, 5))) * rng.uniform(0.8, 1.2, (12, 10))
    X = np.round(X) if family == "poisson" else X
    X[0, 0] = np.nan
    with interpreted():
        model = RelationalBlocks(
            family,
            partition="map",
            n_chains=1,
            n_draws=10,
            burn_in=30,
            n_moves=2,
            random_state=global_random_seed,
        ).fit(X)
        assert model.n_row_clusters_ == 2
        assert 1.5 < model.predict_cells()[0] < 3.0
        assert np.isfinite(model.score_cells(np.array([2.0]))).all()
        assert model.block_values_.shape == (1, 2, 2, 1)


# ---- exact -------------------------------------------------------------------------------------------------


def exact_probability_of_one(X, i, j, family, prior):
    """P(x_ij = 1 | the other cells), summed over all pairs of partitions."""
    log_p = []
    for value in (0, 1):
        filled = X.copy()
        filled[i, j] = value
        joints = []
        for r, c in itertools.product(set_partitions(X.shape[0]), set_partitions(X.shape[1])):
            r, c = np.array(r), np.array(c)
            total = 0.0
            for a, b in itertools.product(range(r.max() + 1), range(c.max() + 1)):
                cells = filled[r == a][:, c == b]
                S = np.array([[np.sum(cells == 0)], [np.sum(cells == 1)]], float)
                total += log_marginals(family, S).sum()
            for z in (r, c):
                total += log_eppf(prior, np.bincount(z).astype(float), int(z.max()) + 1)
            joints.append(total)
        log_p.append(logsumexp(joints))
    return float(np.exp(log_p[1] - logsumexp(log_p)))


def test_link_prediction_is_exact(global_random_seed):
    """The predictive of a missing cell against enumeration, within five standard errors of its own draws."""
    X = np.array([[1, 1, 0, 0], [1, 1, 0, 1], [0, 0, 1, 1], [0, 0, 1, 1]])
    family, prior = Bernoulli.default(1, a=0.5, b=0.5), DirichletProcess(1.0)
    with interpreted():
        truth = exact_probability_of_one(X, 0, 1, family, prior)
    Y = X.astype(float)
    Y[0, 1] = np.nan
    options = {"concentration": 1.0, "learn_hyper": False, "n_moves": 2, "burn_in": 20}
    model = RelationalBlocks(n_chains=20, n_draws=100, thin=2, random_state=3, **options).fit(Y)
    # the predictive from all draws, not only from the kept ones
    found = []
    for r, c in zip(model.row_trace_.labels, model.column_trace_.labels, strict=True):
        cells = Y[r == r[0]][:, c == c[1]]
        found.append((np.nansum(cells) + 0.5) / (np.sum(~np.isnan(cells)) + 1.0))
    found = np.array(found)
    error = found.std() / np.sqrt(effective_size(found))
    assert abs(found.mean() - truth) < 5 * error < 0.1
    # the kept draws agree with all draws
    kept = model.predict_cells_proba()[0, 1]
    assert abs(kept - found.mean()) < 5 * found.std() / np.sqrt(50)
    assert np.exp(model.score_cells([1.0])[0]) == pytest.approx(kept, abs=1e-9)


def test_new_rows(blocks, planted):
    X, rows, _ = planted
    model = blocks().fit(X)
    new = np.where(np.arange(18) < 6, 1.0, np.where(np.arange(18) < 12, 0.0, 1.0))[None]
    P = model.predict_proba(new)
    assert P.shape == (1, 2) and P.sum() == pytest.approx(1.0)
    assert model.predict(new)[0] == model.row_labels_[0] and P.max() > 0.99
    assert np.array_equal(model.predict(X), model.row_labels_)
    nothing = model.predict_proba(np.full((1, 18), np.nan))[0]
    sizes = np.bincount(model.row_labels_)
    assert np.allclose(nothing, sizes / sizes.sum())  # what is known of a row that is not seen


# ---- runs and storage --------------------------------------------------------------------------------------


def test_same_seed_same_result_whatever_the_jobs(blocks, planted):
    X, _, _ = planted
    one, two = blocks().fit(X), blocks(n_jobs=2).fit(X)
    assert np.array_equal(one.row_trace_.labels, two.row_trace_.labels)
    assert np.array_equal(one.column_trace_.log_joint, two.column_trace_.log_joint)


def test_save_and_load(blocks, planted, tmp_path):
    X, _, _ = planted
    X[2, 4] = np.nan
    model = blocks().fit(X)
    model.save(tmp_path / "blocks.npz")
    back = load(tmp_path / "blocks.npz")
    for name in ("row_labels_", "column_labels_", "row_confidence_", "block_values_", "labels_"):
        assert np.array_equal(getattr(model, name), getattr(back, name)), name
    assert back.n_column_clusters_posterior_ == model.n_column_clusters_posterior_
    assert np.array_equal(back.predict_proba(X), model.predict_proba(X))
    assert np.array_equal(back.predict_cells_proba(), model.predict_cells_proba())
    assert np.array_equal(back.score_cells([1.0]), model.score_cells([1.0]))
    assert str(back.fit_report_) == str(model.fit_report_)
    assert str(back.row_diagnostics_) == str(model.row_diagnostics_)
    square = blocks(relation="directed").fit(np.kron(np.eye(2), np.ones((4, 4))))
    square.save(tmp_path / "square.npz")
    assert np.array_equal(load(tmp_path / "square.npz").column_labels_, square.column_labels_)


def test_callback_and_time_limit(blocks, planted):
    X, _, _ = planted
    seen = []
    model = blocks(callback=lambda progress: seen.append(progress) or len(seen) == 60).fit(X)
    assert len(seen) == 60 and "cut_short" in model.fit_report_ and not model.converged_
    assert len(model.row_trace_.labels) == 20
    short = blocks(time_limit=1e-6).fit(X)
    assert set(short.row_trace_.chain) == {0}  # the time was over before a second chain could begin
    assert "provisional" in short.fit_report_
    assert "time limit" in short.fit_report_["cut_short"].message


def test_priors(blocks, planted):
    X, _, _ = planted
    with interpreted():
        model = blocks(prior="pitman_yor", partition="map", n_chains=1, n_draws=5, burn_in=3, n_moves=1).fit(
            X[::2, ::2]
        )
    assert np.isfinite(model.row_trace_.discount).all()
    with pytest.raises(ValueError, match=r"stick_breaking.*exchangeable"):
        blocks(prior="stick_breaking").fit(X)
    fixed = blocks(concentration=0.7).fit(X)
    assert np.allclose(fixed.row_trace_.concentration, 0.7)
