"""CrossCat as an estimator: planted views, queries, distributions, faulty input."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import normalized_mutual_info_score

import partita
from partita import CrossCat
from partita.estimator import DataWarning
from partita.views.draws import shared_views

SHORT = {"n_chains": 2, "n_draws": 10, "burn_in": 30, "random_state": 0}


def planted(N=150, seed=0):
    """Two views of real, binary and categorical columns, and a column of noise; a tenth of the cells is missing."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(2, size=N), rng.integers(3, size=N)
    flip = rng.random((2, N)) < 0.05
    columns = {
        "a_real": 4.0 * a + rng.normal(size=N),
        "a_yes": np.where(flip[0], 1 - a, a),
        "a_level": np.array(["u", "v", "w"])[np.where(rng.random(N) < 0.1, 2, a)],
        "b_real": 5.0 * b + rng.normal(size=N),
        "b_more": -4.0 * b + rng.normal(size=N),
        "b_level": np.array(["p", "q", "r"])[np.where(flip[1], (b + 1) % 3, b)],
        "noise": rng.normal(size=N),
    }
    X = np.empty((N, len(columns)), object)
    for j, values in enumerate(columns.values()):
        X[:, j] = values
    X[rng.random(X.shape) < 0.1] = None
    return X, a, b


@pytest.fixture(scope="module")
def table(global_random_seed):
    return planted(seed=global_random_seed)


@pytest.fixture(scope="module")
def model(table):
    return CrossCat(**SHORT).fit(table[0])


def matched(model, z):
    return max(normalized_mutual_info_score(z, labels) for labels in model.view_labels_.T)


def test_planted_views_are_found(model, table):
    """Bounds are wider than in 100 fresh seeds: NMI from 0.75 and 0.93; in 5 or more, noise was a third view."""
    _, a, b = table
    assert model.n_views_ in (2, 3)
    labels = model.column_labels_
    assert len(set(labels[:3])) == 1 and len(set(labels[3:6])) == 1 and labels[0] != labels[3]
    assert matched(model, a) > 0.6 and matched(model, b) > 0.85
    assert model.view_labels_.shape == (150, model.feature_views_.shape[1])
    assert (model.feature_views_ >= 0).all() and (model.feature_views_.sum(axis=1) <= 1 + 1e-12).all()
    for shares in model.n_clusters_posterior_:
        assert sum(shares.values()) == pytest.approx(1.0)
    assert model.dependence_[0, 1] > 0.9 and model.dependence_[0, 3] < 0.1
    assert model.diagnostics_.dependence_spread.shape == (7, 7)


def test_confidence_and_trace_are_those_of_the_draws(model, table):
    assert model.confidence_.shape == model.view_labels_.shape
    assert model.confidence_kind_ == "co-clustering probability"
    assert (model.confidence_ >= 0).all() and (model.confidence_ <= 1).all()
    assert (model.confidence_[:, :2].mean(axis=0) > 0.6).all()  # from 0.68 in 100 fresh seeds
    assert model.trace_.chain.tolist() == [0] * 10 + [1] * 10
    assert model.trace_.log_joint.tolist() == [draw.log_joint for draw in model.draws_]
    assert model.trace_.n_views_posterior == model.n_views_posterior_
    assert (model.trace_.concentration > 0).all()
    one = CrossCat(inference="search", n_chains=1, max_iter=2, random_state=0)
    assert np.array_equal(one.fit_predict(table[0]), one.view_labels_)
    assert np.isnan(one.confidence_).all()  # a single state


def test_noise_depends_on_nothing(global_random_seed):
    rng = np.random.default_rng(0)
    z = rng.integers(3, size=300)
    X = np.column_stack([*(4.0 * z + rng.normal(size=(3, 300))), *rng.normal(size=(3, 300))])
    model = CrossCat(n_chains=2, random_state=global_random_seed).fit(X)
    assert model.n_views_ == 1 and (model.dependence_[:3, :3] == 1).all()
    assert (model.dependence_[3:, :3] < 0.5).all()
    assert (model.dependence_[3:, 3:][~np.eye(3, dtype=bool)] < 0.5).all()


def test_information_is_zero_across_views_and_never_negative(model):
    M = model.mutual_information()
    off = M[~np.eye(7, dtype=bool)]
    assert (off >= 0).all() and np.allclose(M, M.T, equal_nan=True)
    never = np.ones((7, 7), bool)
    for draw in model.draws_:
        never &= ~shared_views(draw)
    assert never.any() and (M[never] == 0.0).all()
    assert M[0, 1] > 0.2 and M[3, 4] > 0.5


def test_information_of_codes_is_that_of_their_table(global_random_seed):
    """Two binary columns with known clusters, for which the mutual information has a closed form."""
    rng = np.random.default_rng(0)
    z = rng.integers(2, size=2000)
    X = np.column_stack([np.where(rng.random(2000) < 0.1, 1 - z, z) for _ in range(3)])
    model = CrossCat(kinds="binary", n_chains=1, n_draws=5, burn_in=5, random_state=global_random_seed).fit(X)
    joint = np.array([[0.41, 0.09], [0.09, 0.41]])
    exact = (joint * np.log(joint / 0.25)).sum()
    assert model.mutual_information([0, 1])[0, 1] == pytest.approx(exact, abs=0.06)


def test_units_do_not_matter(table, model, same_partition):
    """Two chains, which differ after the first rounding error.

    In 100 fresh seeds, the six planted columns never changed their dependence, that of the noise differed by 0.55 or
    less, labels agreed with an NMI of 0.81 or more, and the mean of the gaps was wrong by 0.15 at most.
    """
    X = table[0].copy()
    for j, (scale, shift) in {0: (1e6, 3.0), 3: (-2.5e-4, 1e3), 4: (7.0, -1e5), 6: (0.1, 0.0)}.items():
        seen = [i for i in range(len(X)) if X[i, j] is not None]
        X[seen, j] = (X[seen, j].astype(float) * scale) + shift
    other = CrossCat(**SHORT).fit(X)
    change = np.abs(other.dependence_ - model.dependence_)
    assert change[:6, :6].max() < 0.2 and change.max() < 0.9
    same_partition(other.column_labels_[:6], model.column_labels_[:6])
    for v in range(2):
        assert matched(other, model.view_labels_[:, v]) > 0.7
    # densities depend on the units: log |scale| per cell
    rows = np.flatnonzero([all(x is not None for x in row) for row in X])[:5]
    gap = model.score_samples(table[0][rows]) - other.score_samples(X[rows])
    # the least scale, 7, has a logarithm of 1.9
    assert gap.mean() == pytest.approx(np.log(1e6 * 2.5e-4 * 7.0 * 0.1), abs=0.9)


def test_densities_of_codes_sum_to_one(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    z = rng.integers(2, size=80)
    pick = np.array([["x0", "x1", "y0", "y1"], ["no", "yes", "", ""], ["l", "m", "n", ""]], object)
    X = np.column_stack(
        [pick[0][2 * z + rng.integers(2, size=80)], pick[1][z], pick[2][rng.integers(3, size=80)]]
    )
    model = CrossCat(n_chains=1, n_draws=4, burn_in=4, random_state=global_random_seed).fit(X)
    levels = [sorted(set(X[:, j])) for j in range(3)]
    grid = np.array(list(itertools.product(*levels)), dtype=object)
    assert np.exp(model.score_samples(grid)).sum() == pytest.approx(1.0, abs=1e-6)
    given = np.array([[None, "yes", None]] * len(levels[0]), dtype=object)
    asked = np.array([[level, None, None] for level in levels[0]], dtype=object)
    conditional = np.exp(model.log_density(asked, given=given))
    assert conditional.sum() == pytest.approx(1.0, abs=1e-6)
    told = model.predict_column(given[:1], 0)
    assert told["probabilities"].sum() == pytest.approx(1.0)


def test_surprisal_is_what_a_cell_adds(table, global_random_seed):
    X = table[0][:4]
    model = CrossCat(n_chains=1, n_draws=1, burn_in=6, random_state=global_random_seed).fit(table[0])
    surprisal = model.surprisal(X)
    for i, j in itertools.product(range(4), range(7)):
        if X[i, j] is None:
            assert np.isnan(surprisal[i, j])
            continue
        without = X[[i]].copy()
        without[0, j] = None
        added = model.score_samples(X[[i]]) - model.score_samples(without)
        assert surprisal[i, j] == pytest.approx(-added[0], abs=1e-8)


def test_missing_cells_are_filled_from_their_view(model, table):
    X, a, b = table
    filled, unsure = model.impute(X)
    seen = np.array([[x is not None for x in row] for row in X])
    assert (unsure[seen] == 0).all() and (unsure[~seen] > 0).all()
    for j in range(7):
        assert all(filled[i, j] == X[i, j] for i in np.flatnonzero(seen[:, j]))
    holes = np.flatnonzero(~seen[:, 3])
    wrong = np.abs(filled[holes, 3].astype(float) - 5.0 * b[holes])
    assert np.median(wrong) < 1.5
    told = model.predict_column(X, 3)
    known = np.flatnonzero(seen[:, 3] & seen[:, 4])
    error = told["mean"][known] - X[known, 3].astype(float)
    assert np.sqrt((error**2).mean()) < 2.0
    inside = np.abs(error) < 2 * told["sd"][known]
    assert inside.mean() > 0.85
    assert set(model.predict_column(X, "x2")["value"]) <= {"u", "v", "w"}


def test_simulated_rows_look_like_the_table(model, table, global_random_seed):
    """Cells of a new cluster have long tails, so they are clipped to the range of the table.

    The bounds are six standard deviations of what 100 fresh seeds gave, or more.
    """
    S = model.simulate(1500, random_state=global_random_seed + 1)
    assert S.shape == (1500, 7)
    seen = [np.array([x for x in table[0][:, j] if x is not None], float) for j in (0, 3, 4)]
    drawn = [np.clip(S[:, j].astype(float), x.min(), x.max()) for j, x in zip((0, 3, 4), seen, strict=True)]
    assert abs(drawn[1].mean() - seen[1].mean()) < 1.0 and abs(drawn[1].std() - seen[1].std()) < 0.6
    r = np.corrcoef(drawn)
    assert r[1, 2] < -0.8 and abs(r[0, 1]) < 0.17
    given = np.full((1, 7), None, object)
    given[0, 4] = -8.0  # the third cluster of the second view
    more = model.simulate(200, given=given, random_state=global_random_seed + 2)
    assert more.shape == (200, 1, 7) and (more[:, 0, 4] == -8.0).all()
    assert abs(np.median(more[:, 0, 3].astype(float)) - 10.0) < 1.0


def test_strange_rows_are_novel(model):
    usual = np.full((1, 7), None, object)
    usual[0, 3:5] = [5.0, -4.0]
    strange = usual.copy()
    strange[0, 3:5] = [90.0, 90.0]
    assert model.novelty(strange)[0] > model.novelty(usual)[0] + 0.2
    assert 0.0 <= model.novelty(usual)[0] <= 1.0


def test_rows_are_similar_where_they_share_clusters(model, table):
    _, a, b = table
    S = model.row_similarity(columns=["x0"])
    same = a[:, None] == a[None, :]
    assert S[same].mean() > 0.75 and S[~same].mean() < 0.25
    assert np.allclose(np.diag(S), 1.0) and np.allclose(S, S.T)
    v = int(model.column_labels_[3])
    assert model.row_similarity(view=v)[b[:, None] == b[None, :]].mean() > 0.75
    assert model.row_similarity([0, 1], weighted=True).shape == (2, 2)


def test_columns_explain_views_and_clusters(model):
    v = int(model.column_labels_[0])
    told = model.explain(v)
    assert {"x0", "x1", "x2"} <= {name for name, _ in told} and told[0][1] > 0.1
    assert [e for _, e in told] == sorted((e for _, e in told), reverse=True)
    assert model.explain(v, 0)[0][1] > 0.05
    profile = model.profiles_[v]["x0"]["mean"]
    assert min(abs(profile - 4.0)) < 1.0 and min(abs(profile)) < 1.0
    assert model.relevance("x0")[v] > 0.8
    with pytest.raises(ValueError, match="no view 99"):
        model.explain(99)
    with pytest.raises(ValueError, match="no cluster 99"):
        model.explain(v, 99)


def test_constraints_hold_in_every_draw(table, global_random_seed):
    together, apart = [["x0", "x3"]], [["x1", 2], [6, "x4"]]
    model = CrossCat(
        together=together, apart=apart, n_chains=1, n_draws=6, burn_in=4, random_state=global_random_seed
    )
    for inference in ("gibbs", "search"):
        model.set_params(inference=inference, max_iter=6).fit(table[0])
        for draw in model.draws_:
            Y = draw.membership.astype(int)
            shared = Y @ Y.T
            assert shared[0, 3] == 1 and shared[1, 2] == 0 and shared[6, 4] == 0
    with pytest.raises(ValueError, match="cannot keep columns apart"):
        model.set_params(inference="vb").fit(table[0])
    with pytest.raises(ValueError, match="separates columns that together= joins"):
        CrossCat(together=[[0, 1]], apart=[[0, 1]]).fit(table[0])
    with pytest.raises(ValueError, match="list of groups"):
        CrossCat(together=["x0"]).fit(table[0])


@pytest.mark.parametrize("inference", ["vb", "search"])
def test_faster_engines_find_the_views(table, inference, global_random_seed):
    X, a, b = table
    model = CrossCat(
        inference=inference, n_chains=2, n_draws=5, max_iter=60, random_state=global_random_seed
    ).fit(X)
    assert matched(model, a) > 0.75 and matched(model, b) > 0.9
    assert model.dependence_[0, 1] > 0.9 and model.dependence_[0, 3] < 0.1
    trace = model.objective_trace_
    assert (np.diff(trace) >= -1e-6 * np.abs(trace[1:])).all()


def test_a_model_on_disk_is_the_same_model(model, table, tmp_path):
    model.save(tmp_path / "views.npz")
    other = partita.load(tmp_path / "views.npz")
    X = table[0][:10]
    np.testing.assert_array_equal(model.score_samples(X), other.score_samples(X))
    np.testing.assert_array_equal(model.dependence_, other.dependence_)
    np.testing.assert_array_equal(model.view_labels_, other.view_labels_)
    assert other.explain(0) == model.explain(0)
    assert other.n_clusters_posterior_ == model.n_clusters_posterior_
    assert str(other.diagnostics_) == str(model.diagnostics_)


def test_the_answer_depends_on_the_seed_alone(table, global_random_seed):
    X = table[0][:60]
    few = {"n_chains": 2, "n_draws": 2, "burn_in": 2}
    fits = [CrossCat(**few, random_state=global_random_seed + 3, n_jobs=jobs).fit(X) for jobs in (None, 2)]
    np.testing.assert_array_equal(fits[0].view_labels_, fits[1].view_labels_)
    assert [d.log_joint for d in fits[0].draws_] == [d.log_joint for d in fits[1].draws_]


def test_progress_and_time_limit(table, capsys, global_random_seed):
    seen = []
    model = CrossCat(n_chains=1, n_draws=50, burn_in=0, callback=lambda p: seen.append(p) or len(seen) == 3)
    model.fit(table[0][:40])
    assert (
        len(seen) == 3
        and len(model.draws_) == 3
        and not model.converged_
        and "cut_short" in model.fit_report_
    )
    CrossCat(n_chains=1, n_draws=1, burn_in=0, verbose=True, random_state=global_random_seed).fit(
        table[0][:40]
    )
    assert "views" in capsys.readouterr().err


# ---- faults ------------------------------------------------------------------------------------------------------

QUICK = {"n_chains": 1, "n_draws": 2, "burn_in": 2, "random_state": 0}


def test_faults_of_tables(table, global_random_seed):
    X = np.random.default_rng(global_random_seed).normal(size=(20, 3))
    bad = X.copy()
    bad[4, 1] = np.inf
    with pytest.raises(ValueError, match="inf"):
        CrossCat(**QUICK).fit(bad)
    with pytest.raises(ValueError):
        CrossCat(**QUICK).fit(np.full((4, 2), np.nan))
    with pytest.raises(ValueError):
        CrossCat(**QUICK).fit(X[:0])
    with pytest.raises(ValueError, match="one vector"):
        CrossCat("gaussian_full", **QUICK).fit(X)
    with pytest.raises(ValueError, match="expecting 3 features"):
        CrossCat(**QUICK).fit(X).predict(X[:, :2])
    assert not hasattr(CrossCat(**QUICK), "schema_")


@pytest.mark.filterwarnings("ignore::partita.estimator.DataWarning")
def test_faults_that_are_none(global_random_seed):
    X = np.random.default_rng(global_random_seed).normal(size=(20, 4))
    empty, row, same = X.copy(), X.copy(), X.copy()
    empty[:, 1], row[3], same[:, 2] = np.nan, np.nan, 7.0
    one = CrossCat(**QUICK).fit(empty)
    assert one.column_labels_[1] == -1 and (one.dependence_[1] == 0).all()
    with pytest.raises(ValueError, match="not modeled"):
        one.relevance(1)
    for some in (row, same, X[:1], np.ones((6, 2)), X.astype(np.float32), np.asfortranarray(X), X[::-1]):
        model = CrossCat(**QUICK).fit(some)
        assert np.isfinite(model.score_samples(some)).all()
        assert model.view_labels_.shape[0] == len(some)
    huge = X * [1e200, 1e-200, 1.0, 1.0] + [0.0, 0.0, 1e9, 0.0]
    assert np.isfinite(CrossCat(**QUICK).fit(huge).score_samples(huge)).all()


def test_unknown_levels_are_missing(model, table):
    X = table[0][:2].copy()
    X[:, 2] = "never seen"
    with pytest.warns(DataWarning, match="never seen|unknown|not seen"):
        scores = model.score_samples(X)
    X[:, 2] = None
    np.testing.assert_allclose(scores, model.score_samples(X))


def test_a_fit_that_fails_leaves_the_model_as_it_was(model, table):
    before = model.view_labels_
    bad = table[0].copy()
    bad[0, 0] = np.inf
    with pytest.raises(ValueError):
        model.fit(bad)
    assert model.view_labels_ is before
