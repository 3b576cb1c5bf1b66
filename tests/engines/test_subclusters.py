"""The sub-cluster sampler against enumeration, against itself on other blocks, and on planted clusters."""

import numpy as np
import pytest

from partita.datasets import make_gaussian_clusters
from partita.engines.passes import memory
from partita.engines.subclusters import moves, sampler
from partita.execution import make_executor, row_chunks
from partita.families import Block, Categorical, GaussianDiagonal, GaussianFull
from partita.labels import canonical
from partita.metrics import adjusted_rand
from partita.partitions import DirichletProcess, bind, specify
from partita.testing import enumerate_partitions

SMALL = {"n_launch": 1, "n_coins": 1, "n_crowds": 1}


def tiny_blocks(name):
    """Five objects, one cell missing, much alike: clusters of one to five are all probable.

    Or six of which nothing is seen: what is left is the prior, where sizes matter most.
    """
    if name == "unseen":
        return [Block(Categorical.default(np.array([2])), np.full((6, 1), -1, np.int32), ("a",))]
    if name == "categorical":
        X = np.array([[0, 1, 0], [0, 1, 0], [0, 1, -1], [0, 0, 1], [1, 1, 2]], np.int32)
        return [Block(Categorical.default(np.array([2, 2, 3])), X, ("a", "b", "c"))]
    X = np.array([[0.1, -0.3], [0.3, -0.4], [0.5, np.nan], [-0.2, 0.3], [0.9, 0.6]])
    return [Block(GaussianDiagonal.default(2), X, ("a", "b"))]


def whole_step(state, blocks, prior):
    return sampler.step(state, blocks, prior, **SMALL)


def groups_only(state, blocks, prior):
    stream = moves.Stream.of(state.key, state.iteration)
    seats, _ = moves.move_groups(state.seats, blocks, prior, stream, 1, None)
    return state._replace(seats=seats, iteration=state.iteration + 1)


def pairs_only(state, blocks, prior):
    stream = moves.Stream.of(state.key, state.iteration)
    seats, _ = sampler.move_pairs(state.seats, blocks, prior, stream, (2, 1), None)
    return state._replace(seats=seats, iteration=state.iteration + 1)


def errors(blocks, prior, n_steps, seed, step=whole_step, n_batches=25):
    """How far a chain is from the exact posterior, in units of its own Monte Carlo error (from batch means).

    First the total variation of the partitions, 1 being what is expected of a correct chain; then the largest standard
    score of the number of clusters, the sum of squared sizes, and all pairs being together.
    """
    exact = enumerate_partitions(blocks, prior)
    N = exact.labels.shape[1]
    prior = bind(prior, N)
    place = {tuple(z): i for i, z in enumerate(exact.labels)}
    state = sampler.init(blocks, np.ones(N, int), prior, np.random.default_rng(seed))
    draws = np.empty(n_steps, int)
    for t in range(n_steps):
        state = step(state, blocks, prior)
        draws[t] = place[tuple(canonical(state.labels))]
    shares = np.array(
        [np.bincount(d, minlength=len(place)) / len(d) for d in np.array_split(draws, n_batches)]
    )

    def standard_error(batches):
        return batches.std(axis=0, ddof=1) / np.sqrt(n_batches)

    gap = np.abs(shares.mean(axis=0) - exact.posterior).sum()
    together = (exact.labels[:, :, None] == exact.labels[:, None, :]).reshape(len(place), -1)
    pairs = together[:, np.flatnonzero(np.triu(np.ones((N, N)), 1))]
    traits = np.column_stack([exact.labels.max(axis=1), together.sum(axis=1), pairs])
    scores = (shares.mean(axis=0) - exact.posterior) @ traits / standard_error(shares @ traits)
    return gap / (np.sqrt(2 / np.pi) * standard_error(shares).sum()), np.abs(scores).max()


# Seen over a dozen seeds of correct chains: distances of 0.6 to 1.5, largest scores below 3.
DISTANCE, SCORE = 2.5, 5.0


def is_exact(*args, **options):
    distance, score = errors(*args, **options)
    return distance < DISTANCE and score < SCORE


@pytest.mark.parametrize("name", ["categorical", "gaussian", "unseen"])
def test_partitions_have_their_exact_probabilities(name):
    assert is_exact(tiny_blocks(name), DirichletProcess(1.3), 1200, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["dirichlet_process", "pitman_yor", "finite", "mfm"])
@pytest.mark.parametrize("name", ["categorical", "gaussian"])
def test_partitions_have_their_exact_probabilities_under_every_prior(name, prior):
    options = {"pitman_yor": {"discount": 0.4}, "finite": {"concentration": 2.0, "n_components": 3}}
    prior = specify(prior, **options.get(prior, {}))
    assert is_exact(tiny_blocks(name), prior, 15000, seed=1)


def test_missing_size_factor_is_caught(monkeypatch):
    """Planted bug: the Gamma functions of the sizes left out of the Hastings ratio of all moves."""
    for module in (sampler, moves):
        monkeypatch.setattr(module, "log_apart", lambda prior, n, m: 0.0 * (n + m))
    assert not is_exact(tiny_blocks("unseen"), DirichletProcess(1.3), 1200, seed=0)


def without_proposal(monkeypatch):
    weigh = moves.weigh
    monkeypatch.setattr(moves, "weigh", lambda *a: weigh(*a[:-1], a[-1]._replace(log_q=0.0 * a[-1].log_q)))


def without_selection(monkeypatch):
    monkeypatch.setattr(moves, "log_selection", lambda *counts: 0.0)


def without_pair_choice(monkeypatch):
    """Promising pairs preferred, but weighed as if all were equal."""
    weigh = sampler.weigh_pair
    monkeypatch.setattr(
        sampler,
        "weigh_pair",
        lambda divided, *a: weigh(divided, *a[:4], -np.log(len(divided.n) * (len(divided.n) - 1) / 2), a[5]),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["categorical", "gaussian", "unseen"])
@pytest.mark.parametrize("step", [groups_only, pairs_only])
def test_each_kind_of_move_is_exact_by_itself(name, step):
    assert is_exact(tiny_blocks(name), DirichletProcess(1.3), 15000, seed=1, step=step)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bug", "step"),
    [(without_proposal, groups_only), (without_selection, groups_only), (without_pair_choice, pairs_only)],
)
def test_planted_bug_is_caught(bug, step, monkeypatch):
    bug(monkeypatch)
    assert not is_exact(tiny_blocks("categorical"), DirichletProcess(1.3), 25000, seed=1, step=step)


def score_of_sizes(n_steps):
    """Standard score of how unequal two clusters are, when nothing is seen of the data and only seats are drawn."""
    N, prior = 20, DirichletProcess(1.3)
    blocks = [Block(Categorical.default(np.array([2])), np.full((N, 1), -1, np.int32), ("a",))]
    n = np.arange(1, N)
    p = 1 / (n * (N - n))  # binomial coefficient times two Gamma functions
    rng, labels = np.random.default_rng(0), np.repeat([0, 1], N // 2)
    seats = sampler.init(blocks, np.ones(N, int), prior, rng, labels=labels).seats
    draws = np.empty(n_steps)
    for t in range(n_steps):
        seats = sampler.reseat(seats, blocks, prior, moves.Stream.of(5, t), None)
        draws[t] = (seats.n[0] - N / 2) ** 2
    means = draws.reshape(25, -1).mean(axis=1)
    return (means.mean() - (n - N / 2) ** 2 @ p / p.sum()) / (means.std(ddof=1) / 5)


def test_keepers_leave_sizes_as_they_should_be():
    assert abs(score_of_sizes(4000)) < 5


def test_weights_that_ignore_the_keepers_are_caught(monkeypatch):
    """Planted bug: the weights of the paper, although keepers stay."""
    monkeypatch.setattr(
        sampler, "draw_log_weights_beside_keepers", lambda prior, n, rng: np.log(rng.standard_gamma(n))
    )
    assert abs(score_of_sizes(4000)) > 5


def planted(N, K=5, D=3, seed=0, separation=4.0):
    data = make_gaussian_clusters(N, D, K, separation=separation, random_state=seed)
    X = np.ascontiguousarray((data.X - data.X.mean(axis=0)) / data.X.std(axis=0))
    return data, [Block(GaussianFull.default(D), X, tuple(range(D)))]


def run(blocks, weights, n_steps, executor=None, **options):
    prior = DirichletProcess(1.0)
    state = sampler.init(blocks, weights, prior, np.random.default_rng(3), executor=executor)
    for _ in range(n_steps):
        state = sampler.step(state, blocks, prior, executor, **options)
    return state


@pytest.mark.parametrize("size", [700, 4096])
def test_jobs_and_blocks_do_not_matter(size, monkeypatch, global_random_seed):
    _, blocks = planted(3000, seed=global_random_seed)
    reference = run(blocks, np.ones(3000, int), 12)
    monkeypatch.setattr(memory, "row_chunks", lambda n: row_chunks(n, size))
    one, two = (run(blocks, np.ones(3000, int), 12, make_executor(jobs)) for jobs in (1, 2))
    assert np.array_equal(one.labels, two.labels) and np.array_equal(one.seats.S[0], two.seats.S[0])
    # sums over other blocks differ in their last bits; the labels of every object agree all the same
    assert np.array_equal(one.labels, reference.labels)
    np.testing.assert_allclose(one.seats.S[0], reference.seats.S[0], rtol=1e-9, atol=1e-9)


def test_uniforms_depend_on_their_place_only():
    stream = moves.Stream.of(11, 5)
    u = stream.uniforms(2, 0, 50)
    for lo, hi in [(0, 1), (1, 50), (6, 7), (8, 33), (20, 20)]:
        assert np.array_equal(stream.uniforms(2, lo, hi), u[lo:hi])
    others = [moves.Stream.of(11, 6).uniforms(2, 0, 50), stream.uniforms(3, 0, 50)]
    assert not any(np.isin(u, other).any() for other in others)


def test_weight_is_as_good_as_repeated_rows(global_random_seed):
    """Counts are whole numbers, so that both chains are the same to the last bit."""
    rng = np.random.default_rng(global_random_seed)
    X = rng.integers(0, 3, size=(30, 4)).astype(np.int32)
    X[3, 2] = -1
    w = rng.integers(0, 9, size=30)
    lik = Categorical.default(np.array([3, 3, 3, 3]))
    weighted = run([Block(lik, X, tuple("abcd"))], w, 15, **SMALL)
    repeated = run([Block(lik, np.repeat(X, w, axis=0), tuple("abcd"))], np.ones(w.sum(), int), 15, **SMALL)
    assert np.array_equal(weighted.labels, repeated.labels)
    assert np.array_equal(weighted.seats.S[0], repeated.seats.S[0])
    counts = sampler.counts(weighted)
    assert np.array_equal(counts.sum(axis=1), w) and np.array_equal(counts.sum(axis=0), weighted.n)


def test_copies_are_seated_as_a_multinomial(global_random_seed):
    p = np.array([0.1, 0.6, 0.3])
    z = np.empty(30000, np.int32)
    u = np.random.default_rng(global_random_seed).random(len(z))
    sampler.seat_copies(np.log(p)[None] + 700.0, np.array([0, len(z)]), u, z)
    error = np.sqrt(p * (1 - p) / len(z))
    assert np.all(np.abs(np.bincount(z) / len(z) - p) < 5 * error)


def test_statistics_are_those_of_the_labels(global_random_seed):
    _, blocks = planted(800, seed=global_random_seed)
    state = run(blocks, np.ones(800, int), 15)
    again = sampler.init(
        blocks,
        np.ones(800, int),
        DirichletProcess(1.0),
        np.random.default_rng(global_random_seed),
        labels=state.labels,
    )
    np.testing.assert_array_equal(again.n, state.n)
    np.testing.assert_allclose(again.seats.S[0], state.seats.S[0], rtol=1e-9, atol=1e-9)
    assert np.isfinite(sampler.log_joint(state, blocks, DirichletProcess(1.0)))


def test_one_cluster_becomes_the_planted_ones(global_random_seed):
    data, blocks = planted(4000, K=6, D=4, seed=global_random_seed, separation=6.0)
    weights, prior = np.ones(4000, int), DirichletProcess(1.0)
    state = run(blocks, weights, 80, warm_up=True)
    rng = np.random.default_rng(global_random_seed)
    planted_state = sampler.init(blocks, weights, prior, rng, labels=canonical(data.oracle))
    found, true = (sampler.log_joint(one, blocks, prior) for one in (state, planted_state))
    one_cluster = sampler.log_joint(run(blocks, weights, 0), blocks, prior)
    assert (true - found) / (true - one_cluster) < 0.02  # planted groups that overlap may be one cluster


@pytest.mark.slow
def test_one_cluster_becomes_twenty(global_random_seed):
    data = make_gaussian_clusters(20000, 10, 20, random_state=global_random_seed)
    X = np.ascontiguousarray((data.X - data.X.mean(axis=0)) / data.X.std(axis=0))
    state = run([Block(GaussianFull.default(10), X, tuple(range(10)))], np.ones(20000, int), 60)
    assert adjusted_rand(data.oracle, state.labels) > 0.97


def test_what_it_cannot_do(global_random_seed):
    _, [block] = planted(20, seed=global_random_seed)
    rng, prior = np.random.default_rng(global_random_seed), DirichletProcess(1.0)
    X = block.data.copy()
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="partly observed"):
        sampler.init([block._replace(data=X)], np.ones(20), prior, rng)
    with pytest.raises(ValueError, match="whole numbers"):
        sampler.init([block], np.full(20, 0.5), prior, rng)
    with pytest.raises(TypeError, match="StickBreaking"):
        sampler.init([block], np.ones(20), specify("stick_breaking"), rng)
    with pytest.raises(ValueError, match="each of them in use"):
        sampler.init([block], np.ones(20), prior, rng, labels=np.repeat([0, 2], 10))
    with pytest.raises(ValueError, match="19 labels for 20"):
        sampler.init([block], np.ones(20), prior, rng, labels=np.zeros(19, int))
