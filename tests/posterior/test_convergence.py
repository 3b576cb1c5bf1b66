import numpy as np
import pytest
from scipy.stats import norm, rankdata

from partita.metrics import adjusted_rand
from partita.posterior import diagnose, ess_bulk, ess_tail, rhat, vote
from partita.posterior.agreement import SUPPORTED, draws_to_sum
from partita.trace import Trace


def autoregression(rng, phi, n_chains, n_draws):
    noise = rng.normal(size=(n_chains, n_draws)) * np.sqrt(1 - phi**2)
    x = np.empty_like(noise)
    x[:, 0] = rng.normal(size=n_chains)
    for t in range(1, n_draws):
        x[:, t] = phi * x[:, t - 1] + noise[:, t]
    return x


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.9])
def test_effective_sample_size_of_an_autoregression(phi, global_random_seed):
    """Theory: n (1 - phi) / (1 + phi). The mean of 20 estimates within 15% (each has a spread of 10 to 15%)."""
    rng = np.random.default_rng(global_random_seed)
    n_chains, n_draws = 4, 2500
    found = [ess_bulk(autoregression(rng, phi, n_chains, n_draws)) for _ in range(20)]
    assert np.mean(found) == pytest.approx(n_chains * n_draws * (1 - phi) / (1 + phi), rel=0.15)


def test_chains_that_mix_have_r_hat_one(global_random_seed):
    """R-hat of independent draws: 1 + O(1/n); of 2000 normal draws in 4 chains it stays below 1.02."""
    rng = np.random.default_rng(global_random_seed)
    assert all(0.99 < rhat(rng.normal(size=(4, 500))) < 1.02 for _ in range(50))


def test_r_hat_is_the_formula(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    x = rng.gamma(1.0, size=(3, 40)) + np.array([[0.0], [0.3], [1.0]])

    def plain(y):
        halves = np.array([half for chain in y for half in (chain[:20], chain[20:])])
        z = norm.ppf((rankdata(halves).reshape(halves.shape) - 3 / 8) / (halves.size + 1 / 4))
        W = np.mean([np.sum((h - h.mean()) ** 2) / 19 for h in z])
        means = z.mean(axis=1)
        B_over_n = np.sum((means - means.mean()) ** 2) / 5
        return np.sqrt((19 / 20 * W + B_over_n) / W)

    assert rhat(x) == pytest.approx(max(plain(x), plain(np.abs(x - np.median(x)))))


def test_the_effective_sample_size_is_the_formula(global_random_seed):
    """Against sums over lags written out, with Geyer's pairs."""
    x = autoregression(np.random.default_rng(global_random_seed), 0.6, 2, 100)
    halves = np.concatenate([x[:, :50], x[:, 50:]])
    z = norm.ppf((rankdata(halves).reshape(halves.shape) - 3 / 8) / (halves.size + 1 / 4))
    n, W = 50, z.var(axis=1, ddof=1).mean()
    total = W * 49 / 50 + z.mean(axis=1).var(ddof=1)
    rho = []
    for lag in range(n):
        covariances = [np.sum((h[: n - lag] - h.mean()) * (h[lag:] - h.mean())) / (n - 1) for h in z]
        rho.append(1 - (W - np.mean(covariances)) / total)
    tau, least = -1.0, np.inf
    for t in range(0, n, 2):
        pair = (1.0 if t == 0 else rho[t]) + rho[t + 1]
        if pair <= 0:
            break
        least = min(least, pair)
        tau += 2 * least
    assert ess_bulk(x) == pytest.approx(200 / tau)


def test_shifted_chains_trends_and_scales_are_seen(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    x = rng.normal(size=(4, 200))
    assert rhat(x + np.array([[0], [0], [0], [2]])) > 1.1
    assert rhat(x + np.linspace(0, 3, 200)) > 1.1  # every chain drifts: visible in split chains only
    assert rhat(x * np.array([[1], [1], [1], [4]])) > 1.1  # equal centers: visible in folded ranks only
    assert ess_tail(x) > 300


def test_constants():
    same = np.full((3, 20), 0.1 + 0.2)
    assert (rhat(same), ess_bulk(same), ess_tail(same)) == (1.0, 60.0, 60.0)
    stuck = same + np.array([[0.0], [0.1], [0.7]])
    assert (rhat(stuck), ess_bulk(stuck)) == (np.inf, 3.0)


def test_only_finite_chains_of_some_length():
    with pytest.raises(ValueError, match="at least 4 draws"):
        rhat(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"values\[1, 2\] is nan"):
        rhat([[0, 1, 2, 3], [0, 1, np.nan, 3]])


def make_trace(labels, chain, rng):
    B = len(labels)
    return Trace(
        labels, rng.normal(size=B), labels.max(axis=1) + 1, rng.gamma(1.0, size=B), np.full(B, np.nan), chain
    )


def test_a_good_trace_is_trusted(noisy_copies, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    labels, _ = noisy_copies(rng, 800, 30, 4, 0.2)
    found = diagnose(make_trace(labels, np.repeat(np.arange(4), 200), rng))
    assert found.trust_n_clusters and found.chains_agree
    assert found.grade == "firm" and found.agreement > 0.9
    assert found.sentence.startswith("Firm: the chains agree on the groups (adjusted Rand index ")
    assert "number of groups" not in found.sentence, "it has converged"
    names = [q.name for q in found.quantities]
    assert names[:4] == ["n_clusters", "log_joint", "concentration", "entropy"]  # no discount: it is NaN
    assert names[4].startswith("worst of 50 pairs")
    assert (found.n_chains, found.n_draws) == (4, 200) and "R-hat" in str(found)


def test_chains_that_disagree_are_told_apart(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    two, three = np.arange(20) % 2, np.arange(20) % 3
    labels = np.concatenate([np.tile(two, (100, 1)), np.tile(three, (100, 1))])
    labels[::7, 0] = 3  # an additional cluster in some draws, so that no chain is constant
    found = diagnose(make_trace(labels, np.repeat([0, 1], 100), rng))
    assert not found.trust_n_clusters and not found.chains_agree
    assert found.grade == "weak" and found.sentence.startswith(
        "Weak: the chains find different groups (adjusted Rand index "
    )
    assert "not converged: K is 2 (2 to 4) and 3 (3 to 4) in the chains. Run longer" in found.sentence
    assert set(found.n_clusters_by_chain[0]) == {2, 4}


def test_the_same_k_in_every_draw_is_fine_but_stuck_chains_are_not(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    labels = np.tile(np.arange(20) % 2, (200, 1))
    trace = make_trace(labels, np.repeat([0, 1], 100), rng)
    assert diagnose(trace).trust_n_clusters and diagnose(trace).grade == "firm"
    labels[100:] = np.arange(20) // 10 * (np.arange(20) % 5 > 0)  # K is 2 as well, the sizes differ
    found = diagnose(make_trace(labels, np.repeat([0, 1], 100), rng))
    pair = {q.name.split(" (")[0]: q.rhat for q in found.quantities}["worst of 50 pairs"]
    assert pair == np.inf and not found.trust_n_clusters and not found.chains_agree
    assert found.grade == "weak" and "K is" not in found.sentence
    assert "in all draws of some chains and in none of others: the chains have not mixed." in found.sentence


def test_unequal_chains_are_cut_and_short_ones_refused(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    labels = rng.integers(3, size=(70, 10))
    trace = make_trace(labels, np.repeat([0, 1], [30, 40]), rng)
    assert diagnose(trace).n_draws == 30
    with pytest.raises(ValueError, match="shortest chain has 3 draws"):
        diagnose(make_trace(labels, np.repeat([0, 1], [3, 67]), rng))


def test_rounding_is_no_difference_between_chains(global_random_seed):
    """Labels that are the same give a log joint that is the same, whatever order its terms were added in."""
    rng = np.random.default_rng(global_random_seed)
    labels = np.tile(np.arange(20) % 2, (200, 1))
    trace = make_trace(labels, np.repeat([0, 1], 100), rng)
    rounding = np.repeat([0.0, 1e-12], 100)
    found = diagnose(trace._replace(log_joint=-1234.5678 + rounding))
    assert {q.name: q.rhat for q in found.quantities}["log_joint"] == 1.0
    found = diagnose(trace._replace(log_joint=-1234.5678 + 1e6 * rounding))
    assert {q.name: q.rhat for q in found.quantities}["log_joint"] == np.inf
    assert found.grade == "firm" and found.trust_n_clusters, "the log joint is shown, not judged"


def test_one_group_and_one_chain_have_no_grade(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    labels = np.zeros((200, 20), int)
    labels[::10, 0] = 1
    found = diagnose(make_trace(labels, np.repeat([0, 1], 100), rng))
    assert found.grade == "" and found.sentence == "One group, with probability 0.90."
    found = diagnose(make_trace(np.tile(np.arange(20) % 2, (100, 1)), np.zeros(100, int), rng))
    assert found.grade == "" and found.sentence.startswith("Not graded: one chain")


@pytest.mark.parametrize(
    ("second", "grade", "words"),
    [(0.93, "firm", ", and another method agrees with the result (0.93)."),
     (0.3, "fair", ", but another method agrees with the result only in part (0.30)."),
     (0.1, "weak", ", but another method finds different groups (0.10).")],
)  # fmt: skip
def test_a_second_opinion_is_told_and_counts(second, grade, words, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    trace = make_trace(np.tile(np.arange(20) % 2, (200, 1)), np.repeat([0, 1], 100), rng)
    found = diagnose(trace, second_opinion=second)
    assert found.grade == grade and words in found.sentence


def test_chains_in_different_partitions_are_not_summed():
    """Two chains against two: together they would vote for a partition that none of them visited."""
    one, other = np.arange(40) // 20, np.arange(40) % 4 // 2
    labels = np.repeat([one, other, one, other], 10, axis=0)
    zeros, chain = np.zeros(40), np.repeat(np.arange(4), 10)
    log_joint = np.where(chain % 2 == 0, -10.0, -20.0)
    chosen = draws_to_sum(Trace(labels, log_joint, labels.max(axis=1) + 1, zeros, zeros, chain))
    assert set(chain[chosen]) == {0, 2}
    chosen = draws_to_sum(Trace(labels, -log_joint, labels.max(axis=1) + 1, zeros, zeros, chain))
    assert set(chain[chosen]) == {1, 3}
    labels[10:20] = one
    assert draws_to_sum(Trace(labels, zeros, labels.max(axis=1) + 1, zeros, zeros, chain)).all()


def test_one_group_is_not_called_certain_by_chains_that_do_not_mix(global_random_seed):
    """The last object is with the others in one chain and alone in the other, in every draw of K = 1 or 2 alike."""
    labels = np.zeros((200, 6), int)
    labels[100:, 0] = 1
    labels[:100, 1] = np.arange(100) % 2
    found = diagnose(
        make_trace(labels, np.repeat([0, 1], 100), np.random.default_rng(global_random_seed)), n_pairs=400
    )
    assert not found.trust_n_clusters and "One group, with probability" not in found.sentence


@pytest.mark.parametrize("n_chains", [2, 3, 4, 6])
def test_some_chain_supports_what_the_chosen_draws_vote_for(n_chains, rng):
    """Also where the chains of one set agree only in pairs, one with the next."""
    for _ in range(30):
        base = rng.integers(3, size=60)
        chains = []
        for _ in range(n_chains):
            moved = rng.random(60) < rng.choice([0.02, 0.1, 0.2, 0.5])
            base = np.where(moved, rng.integers(3, size=60), base)
            chains.append(np.tile(base, (9, 1)))
        labels = np.concatenate(chains)
        noise = rng.random(labels.shape) < 0.05
        labels = np.where(noise, rng.integers(3, size=labels.shape), labels)
        zeros, chain = rng.normal(size=len(labels)), np.repeat(np.arange(n_chains), 9)
        trace = Trace(labels, zeros, labels.max(axis=1) + 1, zeros, zeros, chain)
        answer = vote(labels[draws_to_sum(trace)]).labels
        own = [adjusted_rand(answer, vote(labels[chain == c]).labels) for c in range(n_chains)]
        assert max(own) >= SUPPORTED


def test_votes_have_the_most_probable_number_of_clusters(global_random_seed):
    """Every draw has three clusters, the third a single object that differs from draw to draw."""
    rng = np.random.default_rng(global_random_seed)
    labels = np.tile(np.arange(40) // 20, (200, 1))
    labels[np.arange(200), rng.integers(40, size=200)] = 2
    found = vote(labels)
    assert found.n_clusters == 3
    assert adjusted_rand(found.labels, np.arange(40) // 20) > 0.8
