"""The enumeration itself: against closed forms, and one way of counting against another."""

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from partita.families import FAMILIES, Block, CountVectors, GaussianFull, Multinomial
from partita.families.rows import log_marginals
from partita.partitions import (
    DirichletProcess,
    FiniteDirichlet,
    PitmanYor,
    StickBreaking,
    log_labeled,
    specify,
)
from partita.testing import (
    co_clustering,
    collapsed_bound,
    collapsed_update,
    enumerate_labels,
    enumerate_partitions,
    label_marginals,
    row_statistics,
    subset_log_evidence,
    take,
)

pytestmark = pytest.mark.usefixtures("uncompiled")


def block_of(name, N=4, seed=5):
    lik, data = FAMILIES[name].examples(np.random.default_rng(seed))[0]
    return Block(lik, take(data, range(N)), ("x",))


def test_labels_and_partitions_agree_under_the_finite_dirichlet(global_random_seed):
    blocks = [block_of("categorical", seed=global_random_seed), block_of("poisson", seed=global_random_seed)]
    prior = FiniteDirichlet(1.4, 3)
    labeled, unlabeled = enumerate_labels(blocks, prior), enumerate_partitions(blocks, prior)
    assert labeled.log_evidence == pytest.approx(unlabeled.log_evidence, abs=1e-10)
    np.testing.assert_allclose(co_clustering(labeled), co_clustering(unlabeled), atol=1e-12)


def test_labels_by_the_plainest_loop(global_random_seed):
    block, prior = block_of("gaussian", seed=global_random_seed), StickBreaking(0.8, 2)
    exact = enumerate_labels([block], prior)
    total = []
    for z in itertools.product(range(2), repeat=4):
        joint = log_labeled(prior, np.bincount(z, minlength=2).astype(float))
        for k in range(2):
            S = sum(row_statistics(block.family, block.data, i) * (z[i] == k) for i in range(4))
            joint += log_marginals(block.family, S[:, None]).sum()
        total.append(joint)
    assert exact.log_evidence == pytest.approx(logsumexp(total), abs=1e-12)
    np.testing.assert_allclose(label_marginals(exact, 2).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    "prior", [DirichletProcess(0.7), PitmanYor(0.5, 0.3), specify("mfm"), FiniteDirichlet(2.0, 4)]
)
def test_posteriors_over_partitions_sum_to_one_and_blocks_multiply(prior, global_random_seed):
    one, two = (
        block_of("bernoulli", seed=global_random_seed),
        block_of("multinomial", seed=global_random_seed),
    )
    exact = enumerate_partitions([one, two], prior)
    assert len(exact.labels) == 15
    assert exact.posterior.sum() == pytest.approx(1.0)
    alone = enumerate_partitions([one], prior).log_joint + enumerate_partitions([two], prior).log_joint
    apart = enumerate_partitions([block_of("bernoulli", seed=global_random_seed)], prior)
    log_prior = apart.log_joint - [
        sum(subset_log_evidence(one)[sum(1 << i for i in range(4) if z[i] == k)] for k in range(max(z) + 1))
        for z in apart.labels
    ]
    np.testing.assert_allclose(exact.log_joint, alone - log_prior, atol=1e-10)


def test_hidden_gaussian_coordinates_integrate_to_the_marginal_student():
    """A single partly observed vector: the multivariate Student distribution of its observed coordinates."""
    lik = GaussianFull.of(
        np.array([0.3, -1.0, 0.2]), 0.7, 6.0, np.array([[2, 0.5, 0], [0.5, 1, 0.2], [0, 0.2, 3]])
    )
    X = np.array([[0.5, np.nan, 1.2]])
    freedom, seen = lik.nu - 2, [0, 2]
    shape = (lik.Psi * (lik.kappa + 1) / (lik.kappa * freedom))[np.ix_(seen, seen)]
    right = stats.multivariate_t.logpdf(X[0, seen], lik.m[seen], shape, freedom)
    assert subset_log_evidence(Block(lik, X, ()))[1] == pytest.approx(right, abs=1e-8)


def test_hidden_counts_sum_to_the_dirichlet_multinomial_of_the_seen_ones():
    lik = Multinomial.of(np.array([1.5, 0.7, 2.0]))
    block = Block(lik, CountVectors.from_dense(np.array([[3.0, np.nan, 2.0], [1.0, np.nan, 4.0]])), ())
    seen = Multinomial.of(np.array([1.5, 2.0]))
    whole = Block(seen, CountVectors.from_dense(np.array([[3.0, 2.0], [1.0, 4.0]])), ())
    np.testing.assert_allclose(subset_log_evidence(block), subset_log_evidence(whole), atol=1e-6)


def test_the_collapsed_bound_meets_the_evidence_only_at_independent_posteriors(rng, global_random_seed):
    exact = enumerate_labels([block_of("categorical", seed=global_random_seed)], StickBreaking(1.3, 3))
    for _ in range(20):
        R = rng.dirichlet(np.ones(3), size=4)
        before = collapsed_bound(exact, R)
        assert before < exact.log_evidence
        R[2] = collapsed_update(exact, R, 2)
        assert collapsed_bound(exact, R) >= before
