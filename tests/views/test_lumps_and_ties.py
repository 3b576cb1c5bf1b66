"""Lumps and ties in models of views: exact on tiny tables, and answers about columns of two parts in user units."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import kstest, norm
from scipy.stats import t as student
from sklearn.metrics import normalized_mutual_info_score as nmi

from partita import CrossCat, OverlappingViews, load
from partita.families import Bernoulli, Block, GaussianDiagonal, Lumps, Ties
from partita.families.sized_gaussian import SizedGaussian
from partita.partitions import DirichletProcess, IndianBuffet
from partita.testing import FALSE_ALARM
from partita.views.crosscat import state as columns
from partita.views.crosscat.chain import ViewsChain, views_sampler
from partita.views.crosscat.layout import evidence, lay_out
from partita.views.crosscat.row_factors import RowFactors, real_cells, real_columns, without_row_factors
from partita.views.crosscat.tied_cells import tie_step
from partita.views.draws import Draw, Factor, FactorBlock
from partita.views.information import draw_information
from partita.views.overlapping.additive import AdditiveColumns, Effects, read_reals
from partita.views.overlapping.chain import OverlapChain, overlap_steps
from partita.views.overlapping.state import add_view, empty_state
from partita.views.overlapping.table import OverlapHyper, OverlapTable
from partita.views.real_columns import draw_tied
from tests.views import test_crosscat_exact as crosscat_exact
from tests.views import test_overlap_exact as overlap_exact

BOTH = [CrossCat, OverlappingViews]
SHORT = {"n_chains": 1, "n_draws": 8, "burn_in": 8, "random_state": 0}
PLAIN = {"family": {"real": "gaussian"}}
WIDTH = 1.6  # of a cell: wide, so that values anywhere else in it, or none drawn, change the posterior


def messy_table(rng, n_rows=400):
    """Two views of three columns, two groups in each: many zeros, rounded, and as it is."""
    labels = rng.integers(2, size=(n_rows, 2))
    X = np.empty((n_rows, 6))
    for v in (0, 1):
        z = labels[:, v]
        X[:, 3 * v] = np.exp(2.0 + 1.5 * z + 0.4 * rng.normal(size=n_rows))
        X[rng.random(n_rows) < np.where(z == 1, 0.3, 0.8), 3 * v] = 0.0
        X[:, 3 * v + 1] = np.round(5.0 + 3.0 * z + 0.7 * rng.normal(size=n_rows))
        X[:, 3 * v + 2] = 5.0 * z + rng.normal(size=n_rows)
    return X, labels


@pytest.fixture(scope="module")
def table(global_random_seed):
    X, labels = messy_table(np.random.default_rng(global_random_seed))
    X[np.random.default_rng(global_random_seed + 1).random(X.shape) < 0.03] = np.nan
    return X, labels


@pytest.fixture(scope="module", params=BOTH, ids=lambda estimator: estimator.__name__)
def model(request, table):
    return request.param(**SHORT).fit(table[0])


def notes(model):
    return {code for code in ("lumps", "ties", "powers") if code in model.fit_report_}


# ---- exact ----------------------------------------------------------------------------------------------------------


def nodes_of(ties, n_nodes=8):
    """The cells of one column on a grid: values [row, combination], and the log weight of each combination."""
    x, w = np.polynomial.legendre.leggauss(n_nodes)
    half = 0.5 * (ties.high - ties.low)[:, 0]
    values = ties.low + half[:, None] * (x + 1.0)
    grid = itertools.product(range(n_nodes), repeat=len(values))
    index = np.array(list(grid)).T
    log_w = np.log(half[:, None] * w)
    return np.take_along_axis(values, index, axis=1), np.take_along_axis(log_w, index, axis=1).sum(axis=0)


def make_ties(x):
    return Ties(x, x - 0.4 * WIDTH, x + 0.6 * WIDTH)


def test_crosscat_with_ties_has_the_exact_posterior(global_random_seed, monkeypatch, n_draws=1000):
    """Every partition of columns and rows, cells integrated by quadrature; no prior on where in its cell a value is."""
    real, binary, _ = crosscat_exact.table_blocks()
    ties = make_ties(real.data)
    rng = np.random.default_rng(global_random_seed)
    layout = lay_out([real._replace(ties=ties, data=ties.start(rng)), binary])
    values, log_w = nodes_of(ties)
    family = GaussianDiagonal(*(np.repeat(value, len(log_w)) for value in real.family))

    def integrated(blocks, families, z, K):
        tied = evidence([Block(family, np.asfortranarray(values), ())], [family], z, K)
        return np.append(logsumexp(tied + log_w), evidence(blocks[1:], families[1:], z, K))

    monkeypatch.setattr(crosscat_exact, "evidence", integrated)
    states, p = crosscat_exact.exact_posterior(layout)
    priors, labels = [DirichletProcess(crosscat_exact.ROWS)] * 2, [np.zeros(4, int)] * 2
    plan, views = crosscat_exact.PLAN, crosscat_exact.VIEWS
    first = columns.start(layout, [[0], [1]], labels, priors, rng, plan, view_concentration=views)
    sampler = views_sampler(lambda: ViewsChain(first, rng), plan)
    chain, visited = sampler.start(), []
    for _ in range(n_draws):
        for step in sampler.steps:
            chain = step(chain)
        visited.append(crosscat_exact.state_of(chain.state))
    assert crosscat_exact.p_value(states, p, visited) > FALSE_ALARM


@pytest.mark.slow
def test_even_draws_in_cells_are_caught(global_random_seed, monkeypatch):
    """A planted bug: even draws in place of those of the truncated normal."""
    monkeypatch.setattr("partita.views.real_columns.draw_interval", lambda a, b, u: a + u * (b - a))
    with pytest.raises(AssertionError):
        test_crosscat_with_ties_has_the_exact_posterior(global_random_seed, monkeypatch, 4000)


def grid_ties(x, width=1.5):
    low = width * np.floor(x / width)
    return Ties(x, low, low + width)


def check_truncated_normal(x, ties, center, sd, *along):
    """By the distribution function of the truncated normal, drawn values are uniform; so they are turned by signs."""
    below, value, above = (norm.cdf((v - center) / sd) for v in (ties.low, x, ties.high))
    kept = (above - below > 1e-6).ravel()
    u = ((value - below) / np.maximum(above - below, 1e-300)).ravel()
    for turn in (np.ones(x.shape), *along):
        turned = np.where(turn.ravel() > 0, u, 1.0 - u)[kept]
        assert kstest(turned, "uniform").pvalue > FALSE_ALARM


def test_tied_cells_given_row_factors(rng, monkeypatch):
    """The part of the row factors and the size of the row count, in CrossCat and in overlapping views."""
    n, gain, loadings = 3000, np.array([0.4]), np.array([[0.8]])
    f, mean, precision = rng.normal(size=(n, 1)), rng.normal(1.0, 2.0, (n, 1)), rng.uniform(0.5, 2.0, (n, 1))
    center = f * 0.8 + (1.0 + 0.4 * f) * mean
    x = center + rng.normal(size=(n, 1)) / np.sqrt(precision)
    family = GaussianDiagonal(np.zeros(1), np.ones(1), np.full(1, 2.0), np.ones(1))
    layout = lay_out([Block(family, x, ("a",), ties=grid_ties(x))])
    factors = RowFactors(f, loadings, 1.0, real_columns(layout), real_cells(layout), gain)
    sized = without_row_factors(layout, factors)
    priors, plan = [DirichletProcess(1.0)], crosscat_exact.PLAN
    families = [SizedGaussian(*family)]
    state = columns.start(sized, [[0]], [np.zeros(n, int)], priors, rng, plan, families)
    monkeypatch.setattr("partita.views.crosscat.tied_cells.drawn_cells", lambda *_: (mean, precision))
    drawn = tie_step(state._replace(factors=factors), rng, np.float64)
    check_truncated_normal(drawn.factors.raw, grid_ties(x), center, precision**-0.5, f, mean, f * mean)
    assert np.allclose(drawn.layout.blocks[0].data.X, drawn.factors.raw - f * 0.8)

    z = rng.integers(2, size=n)
    effects = Effects(rows=f, gain=gain)
    state = add_view(empty_state(1, OverlapHyper(effects, ())), z, [0])
    table = OverlapTable(read_reals(x), None, grid_ties(x))
    found = table.additive.parameters(state, effects, rng)
    monkeypatch.setattr(AdditiveColumns, "parameters", lambda *_: found)
    values = table.tie_step(state, rng).additive.X
    mean = found.intercept + found.effects[0][state.Z[0]]
    center = f @ found.loadings + (1.0 + 0.4 * f) * mean
    check_truncated_normal(values, grid_ties(x), center, found.noise, f, mean, f * mean)


class IntegratedScores:
    """Scores of additive columns, the first of them with its cells integrated by quadrature."""

    def __init__(self, table, nodes, log_w, Z, hyper):
        self.exact, self.tied = table.scores(Z, hyper), OverlapTable(nodes, None).scores(Z, hyper)
        self.log_w = log_w

    def __call__(self, views):
        out = self.exact(views).copy()
        out[0] = logsumexp(self.tied(views) + self.log_w)
        return out

    def total(self, Y):
        return sum(self(tuple(np.flatnonzero(y)))[d] for d, y in enumerate(Y))


def test_overlapping_views_with_ties_have_the_exact_posterior(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    X = overlap_exact.REALS
    ties = make_ties(X[:, :1])
    values, log_w = nodes_of(ties)
    hyper = OverlapHyper(Effects(effect=3.0, b=0.1), ())
    empty = empty_state(overlap_exact.D, hyper, IndianBuffet(1.2, 0.8), 0.9)
    plain = OverlapTable(read_reals(X), None)
    nodes = read_reals(values)

    class Integrated:
        def scores(self, Z, hyper):
            return IntegratedScores(plain, nodes, log_w, Z, hyper)

    states, p = overlap_exact.exact_posterior(Integrated(), empty, 2)
    gaps = np.full((4, 2), np.nan)
    all_ties = Ties(X, np.hstack([ties.low, gaps]), np.hstack([ties.high, gaps]))
    chain, drawn = OverlapChain(empty, rng), []
    steps = overlap_steps(plain._replace(ties=all_ties), overlap_exact.FIXED)
    for _ in range(1000):
        for step in (*steps[:2], steps[3], *steps[:2], steps[3]):
            chain = step(chain)
        drawn.append(overlap_exact.name(chain.state))
    assert overlap_exact.p_value(states, p, drawn) > FALSE_ALARM


def test_density_of_one_cluster(rng):
    """A column with a lump and one with few values beside it, in one cluster, by hand."""
    n = 120
    X = np.column_stack([rng.gamma(4.0, 2.0, n), rng.normal(3.0, 1.0, n), rng.normal(size=n)])
    X[rng.random(n) < 0.6, 0] = 0.0
    X[:115, 1] = 7.0
    options = {"lumps": True, "ties": False, "powers": False}
    model = CrossCat(
        {"real": ("auto", options)}, concentration=1e-12, learn_hyper=False, nuisance=0, **SHORT
    ).fit(X)
    assert model.view_labels_.max() == 0 and notes(model) == {"lumps"}

    def normal(x, seen):
        """Predictive of a standardized normal column, in its units: a t distribution."""
        family = next(b.family for b in model._blocks if isinstance(b.family, GaussianDiagonal))
        m, k, a, b = (float(value[0]) for value in family)
        center, scale = seen.mean(), seen.std()
        z, N = (seen - center) / scale, len(seen)
        mean, shape = (k * m + z.sum()) / (k + N), a + N / 2
        rate = b + 0.5 * (((z - z.mean()) ** 2).sum() + k * N * (z.mean() - m) ** 2 / (k + N))
        law = student(2 * shape, mean, np.sqrt(rate / shape * (1 + 1 / (k + N))))
        return law.logpdf((x - center) / scale) - np.log(scale)

    others = X[X[:, 0] != 0.0, 0]
    rest = X[X[:, 1] != 7.0, 1]
    new = np.array([[0.0, 7.0, 0.3], [5.0, 2.5, 0.1], [np.nan, 7.0, np.nan], [5.0, np.nan, np.nan]])
    lump = [np.log((0.5 + m) / (1 + n)) for m in (n - len(others), len(others))]
    few = [np.log((0.5 + m) / (1 + n)) for m in (n - len(rest), len(rest))]
    center, scale = rest.mean(), rest.std()
    beside = -0.5 * (((2.5 - center) / scale) ** 2 + np.log(2 * np.pi)) - np.log(scale)
    plain = normal(new[:2, 2], X[:, 2])
    value = lump[1] + normal(5.0, others)
    expected = [lump[0] + few[0] + plain[0], value + few[1] + beside + plain[1], few[0], value]
    assert model.score_samples(new) == pytest.approx(expected, abs=1e-6)
    surprisal = model.surprisal(new)
    assert surprisal[:, 0] == pytest.approx([-lump[0], -value, np.nan, -value], abs=1e-6, nan_ok=True)
    assert surprisal[:, 1] == pytest.approx(
        [-few[0], -few[1] - beside, -few[0], np.nan], abs=1e-6, nan_ok=True
    )
    found = model.predict_column(new[:1], 1)
    share = np.exp(few[0])
    assert found["mean"][0] == pytest.approx(7.0 * share + (1 - share) * center)


def parted_draw(together):
    """A draw of one column with a lump and a binary one: all parts in one factor, or the values in another."""
    share = np.array(
        [[10.0, 90.0], [90.0, 10.0], [80.0, 20.0], [20.0, 80.0]]
    )  # two columns of codes, two states
    lump = Bernoulli(np.full(2, 0.5), np.full(2, 0.5))
    family = GaussianDiagonal(np.zeros(1), np.full(1, 1e-3), np.ones(1), np.full(1, 1e-3))
    n, mean = 1e6, np.array([[-3.0, 3.0]])
    S = np.vstack([np.full((1, 2), n), n * mean, n * (mean**2 + 0.25)])
    codes, values = FactorBlock(1, np.arange(2), lump, share), FactorBlock(0, np.arange(1), family, S)
    log_half = np.log([0.5, 0.5])
    if together:
        factors = (Factor(np.array([0, 0, 1]), log_half, (values, codes)),)
    else:
        factors = (Factor(np.array([0]), log_half, (values,)), Factor(np.array([0, 1]), log_half, (codes,)))
    return Draw(np.ones((2, 1), bool), np.zeros((1, 1), int), factors, 0.0, 0, np.ones(2))


@pytest.mark.parametrize("together", [True, False])
def test_information_about_both_parts(together, rng):
    """The mutual information of a column of two parts with a binary one, by enumeration."""
    found = draw_information(parted_draw(together), [0, 1], 2000, rng)[0, 1]
    p_seen, p_one = np.array([90.5, 10.5]) / 101, np.array([20.5, 80.5]) / 101
    if together:  # the values tell the state where they are seen
        joint = np.zeros((3, 2))
        for s in (0, 1):
            for row, p in ((0, 1 - p_seen[s]), (1 + s, p_seen[s])):
                joint[row] += 0.5 * p * np.array([1 - p_one[s], p_one[s]])
    else:
        joint = sum(0.5 * np.outer([1 - p_seen[s], p_seen[s]], [1 - p_one[s], p_one[s]]) for s in (0, 1))
    exact = sum(
        p * np.log(p / (joint[i].sum() * joint[:, j].sum())) for (i, j), p in np.ndenumerate(joint) if p > 0
    )
    assert found == pytest.approx(exact, abs=0.01)


# ---- planted --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", BOTH)
def test_both_views_are_found(estimator, table):
    X, labels = table
    model = estimator(**SHORT).fit(X)
    assert {"lumps", "ties"} <= notes(model)
    found = model.view_labels_[:, model.counted_views_]
    assert found.shape[1] == 2
    agreement = [max(nmi(z, other) for other in found.T) for z in labels.T]
    assert min(agreement) > 0.75, agreement
    plain = estimator(**PLAIN, **SHORT).fit(X)
    assert not notes(plain)
    assert found.max() <= plain.view_labels_.max()
    # a short chain may keep a second view that the search has given to a column by chance
    within, across = model.dependence_[:3, :3].mean(), model.dependence_[:3, 3:].mean()
    assert within > 0.8 and across < 0.7
    information = model.mutual_information([0, 1, 4])
    assert information[0, 1] > 0.05 and information[0, 1] > information[0, 2]


def test_densities_are_in_the_units_of_the_table(model):
    """Probability of the lump and density elsewhere are 1 together, alone and given other cells."""
    x = np.concatenate([[0.0], np.exp(np.linspace(-6.0, 11.0, 6000))])
    X, given = np.full((len(x), 6), np.nan), np.full((len(x), 6), np.nan)
    X[:, 0] = x
    given[:, 1:3] = 5.0, 0.0
    for p in (np.exp(model.log_density(X)), np.exp(model.log_density(X, given=given))):
        below = 40.0 * np.linspace(-1.0, -1e-9, 4000)
        Y = np.full((len(below), 6), np.nan)
        Y[:, 0] = below
        negative = np.trapezoid(np.exp(model.log_density(Y)), below)
        assert p[0] + np.trapezoid(p[1:], x[1:]) + negative == pytest.approx(1.0, abs=0.03)
    both = np.where(np.isnan(X), given, X)
    surprisal = model.surprisal(both[::500])[:, 0]
    assert surprisal == pytest.approx(-model.log_density(X[::500], given=given[::500]), abs=0.1, rel=0.05)
    given[:, 0] = 50.0  # cells of X count, also where they are the lump
    assert model.log_density(X[:2], given=given[:2]) == pytest.approx(
        model.log_density(X[:2], given=np.where(np.arange(6) == 0, np.nan, given[:2]))
    )


def test_answers_about_a_column_with_a_lump(model, table):
    X = table[0]
    seen = X[~np.isnan(X[:, 0]), 0]
    drawn = model.simulate(4000, random_state=0)
    spread = np.sqrt(0.25 / len(seen))
    assert (drawn[:, 0] == 0).mean() == pytest.approx((seen == 0).mean(), abs=5 * spread)
    assert np.median(drawn[drawn[:, 0] > 0, 0]) == pytest.approx(np.median(seen[seen > 0]), rel=0.4)
    assert not np.isnan(drawn).any()
    empty = np.full((1, 6), np.nan)
    found = model.predict_column(empty, "x0")
    assert found["mean"][0] == pytest.approx(seen.mean(), rel=0.25)
    assert found["sd"][0] == pytest.approx(seen.std(), rel=0.35)
    filled, doubt = model.impute(X[:20])
    holes = np.isnan(X[:20])
    assert np.array_equal(filled[~holes], X[:20][~holes]) and (doubt[holes] > 0).all()
    given = np.full((1, 6), np.nan)
    given[0, 2] = 5.0  # the group with fewer zeros
    fewer, more = (
        (model.simulate(2000, g, random_state=0)[:, 0, 0] == 0).mean() for g in (given, given - 5.0)
    )
    assert fewer + 0.2 < more
    assert model.simulate(2, np.array([[0.0, *[np.nan] * 5]]), random_state=0)[:, 0, 0].tolist() == [0.0, 0.0]
    of_views = [
        view["x0"] for view in model.profiles_ if "x0" in view
    ]  # one part may be in both views by chance
    profiles = max(of_views, key=lambda profile: np.ptp(profile["lump_share"]))
    assert (profiles["lump"] == 0).all() and np.isfinite(profiles["mean_elsewhere"]).all()
    assert np.ptp(profiles["lump_share"]) > 0.25
    assert model.novelty(X[:5]).min() >= 0.0 and model.novelty(X[:5]).max() <= 1.0
    view = int(np.argmax(model.feature_views_[0]))
    explained = [name for name, _ in model.explain(view)]
    assert sorted(explained) == sorted(set(explained)) and "x0" in explained
    assert model.predict(X[:10]).shape == (10, model.view_labels_.shape[1])
    assert len(model.feature_views_) == 6 and (model.feature_views_ <= 1 + 1e-9).all()


def test_models_are_stored(model, table, tmp_path):
    model.save(tmp_path / "model.partita")
    again = load(tmp_path / "model.partita")
    X = table[0][:10]
    assert again.score_samples(X) == pytest.approx(model.score_samples(X))
    assert again.simulate(3, random_state=0) == pytest.approx(model.simulate(3, random_state=0))
    assert np.array_equal(again.predict(X), model.predict(X))
    for one, other in zip(again.profiles_, model.profiles_, strict=True):
        assert one.keys() == other.keys()
        for name, values in other.get("x0", {}).items():
            assert one["x0"][name] == pytest.approx(values)


@pytest.mark.parametrize("estimator", BOTH)
def test_units_do_not_matter(estimator, table):
    """Another unit changes densities by its logarithm, and no lump's probability. A power is found up to rounding."""
    X, family = table[0], {"real": ("auto", {"powers": False})}
    model = estimator(family=family, **SHORT).fit(X)
    other = estimator(family=family, **SHORT).fit(X / 128.0)
    assert np.array_equal(other.view_labels_, model.view_labels_)
    is_lump = X[:20, [0, 3]] == 0
    n_seen = (~np.isnan(X[:20])).sum(axis=1) - is_lump.sum(axis=1)
    found = model.score_samples(X[:20]) + n_seen * np.log(128.0)
    assert other.score_samples(X[:20] / 128.0) == pytest.approx(found)


@pytest.mark.parametrize("estimator", BOTH)
def test_resumed_chains_have_their_own_cells(estimator, table, tmp_path):
    X, few = table[0][:100], {"n_chains": 1, "n_draws": 4, "burn_in": 4, "random_state": 0, "nuisance": 0}
    whole = estimator(**few).fit(X)

    def killed(progress):
        if progress.iteration == 6:
            raise MemoryError("killed")

    with pytest.raises(MemoryError):
        estimator(**few, resume=tmp_path, callback=killed).fit(X)
    resumed = estimator(**few, resume=tmp_path).fit(X)
    assert resumed.score_samples(X) == pytest.approx(whole.score_samples(X), abs=1e-12)


@pytest.mark.parametrize("estimator", BOTH)
def test_each_step_is_switched_off(estimator, table):
    X = table[0][:150]
    few = {**SHORT, "n_draws": 2, "burn_in": 0, "nuisance": 0}
    for options in ({"lumps": False}, {"ties": False}, {"powers": False}, {"lumps": False, "ties": False}):
        model = estimator(family={"real": ("auto", options)}, **few).fit(X)
        assert not notes(model) & set(options)
        assert any(isinstance(block.coding, Lumps) for block in model._blocks) == ("lumps" not in options)
    assert not notes(estimator(**few).fit(X[:40]))  # too few rows
    with pytest.raises(ValueError, match="no option"):
        estimator(family={"real": ("auto", {"lump": False})}, **few).fit(X)


def test_parts_of_a_column_move_together(table):
    X = table[0][:150]
    few = {**SHORT, "n_draws": 4, "burn_in": 2, "nuisance": 0}
    model = CrossCat(together=[["x0", "x4"]], apart=[["x0", "x2"]], **few).fit(X)
    for draw in model.draws_:
        assert draw.membership.sum(axis=1).tolist() == [1] * 6
        assert draw.membership[0].argmax() == draw.membership[4].argmax() != draw.membership[2].argmax()
        assert sum((factor.columns == 0).sum() for factor in draw.factors) == 2


@pytest.mark.parametrize("inference", ["vb", "search"])
def test_one_draw_of_the_cells(inference, table):
    X = table[0][:150]
    model = CrossCat(inference=inference, n_chains=1, max_iter=300, tol=1e-3, nuisance=0, random_state=0).fit(
        X
    )
    assert {"lumps", "ties"} <= notes(model) and np.isfinite(model.score(X))


def test_parts_in_different_views(rng):
    """Whether there is a purchase follows one grouping of the customers, and how large it is another."""
    n = 500
    a, b = rng.integers(2, size=(2, n))
    X = np.column_stack([8.0 + 6.0 * b, *[5.0 * a] * 3, *[5.0 * b] * 3]) + rng.normal(size=(n, 7))
    X[rng.random(n) < np.where(a == 1, 0.15, 0.85), 0] = 0.0
    model = OverlappingViews(n_init=1, nuisance=0, **SHORT).fit(X)
    assert model.n_views_ == 2 and model.membership_[0].all()
    assert 6 <= model.membership_[1:].sum() <= 8  # a column may have a second view by chance
    assert (model.dependence_[0, 1:] > 0.8).all() and model.dependence_[1:4, 4:].mean() < 0.7
    information = model.mutual_information([0, 1, 4])
    assert min(information[0, 1:]) > 0.05 > information[1, 2]
    x = np.linspace(-20.0, 45.0, 4001)[1:]
    Y = np.full((len(x) + 1, 7), np.nan)
    Y[1:, 0], Y[0, 0] = x, 0.0
    for given in ([np.nan, np.nan], [5.0, 0.0], [0.0, 5.0]):
        Z = Y.copy()
        Z[:, [1, 4]] = given
        p = np.exp(-model.surprisal(Z)[:, 0])
        assert p[0] + np.trapezoid(p[1:], x) == pytest.approx(1.0, abs=0.02)
        found, mean = model.predict_column(Z[:1], 0), np.trapezoid(p[1:] * x, x)
        sd = np.sqrt(np.trapezoid(p[1:] * x**2, x) - mean**2)
        assert found["mean"][0] == pytest.approx(mean, rel=0.05, abs=0.2)
        assert found["sd"][0] == pytest.approx(sd, rel=0.1)
    for view in model.profiles_:
        assert np.isfinite(view["x0"]["mean"]).all() and np.isfinite(view["x0"]["lump_share"]).all()
    shares = [np.ptp(view["x0"]["lump_share"]) for view in model.profiles_]
    means = [np.ptp(view["x0"]["mean_elsewhere"]) for view in model.profiles_]
    assert sorted(np.array(shares) > 0.4) == [False, True] and sorted(np.array(means) > 3.0) == [False, True]


def test_cells_of_ties_are_drawn(rng):
    """Truncated to their cells, others unchanged."""
    low = np.where(rng.random((50, 3)) < 0.5, np.nan, -1.0)
    x = draw_tied(np.full((50, 3), 9.0), low, low + 1.5, np.full((50, 3), 4.0), np.ones((50, 3)), rng)
    assert (x[np.isnan(low)] == 9.0).all()
    assert ((x >= -1.0) & (x <= 0.5))[~np.isnan(low)].all()
