"""The tree over label rows and its cuts, against the formulas written down naively."""

import numpy as np
import pytest

from partita.consensus.default.bottleneck import (
    UNSEEN_LOSS,
    coarser_cuts,
    cut_tree,
    grow_tree,
    sample_signatures,
)
from partita.consensus.default.pair_information import cut_curve, resampled_cuts
from partita.consensus.default.tempered import SMOOTHING, label_certainty, log_joint, temper
from partita.consensus.member_statistics import own_agreement
from partita.labels.information import pair_information


def f(x):
    return x * np.log(x) if x > 0 else 0.0


def gain(a, b):
    return f(a + b) - f(a) - f(b)


def naive_tree(codes, weights, J, v):
    """Every loss from scratch before every merge; slots as in the engine: the lower one keeps the cluster."""
    clusters = {
        i: (w, [np.bincount([c], [w], minlength=j) if c >= 0 else np.zeros(j) for c, j in zip(row, J, strict=True)])
        for i, (row, w) in enumerate(zip(codes, weights, strict=True))
    }  # fmt: skip
    z, partitions, losses = np.arange(len(codes)), [np.arange(len(codes))], []
    while len(clusters) > 1:
        best = None
        for a in sorted(clusters):
            for b in sorted(clusters):
                if b <= a:
                    continue
                (na, A), (nb, B) = clusters[a], clusters[b]
                seen = sum(w * gain(x.sum(), y.sum()) for w, x, y in zip(v, A, B, strict=True))
                same = sum(
                    w * gain(p, q) for w, x, y in zip(v, A, B, strict=True) for p, q in zip(x, y, strict=True)
                )
                loss = (1 - same / seen) * gain(na, nb) if seen > 0 else UNSEEN_LOSS
                if best is None or loss < best[0] - 1e-12:
                    best = loss, a, b
        loss, a, b = best
        (na, A), (nb, B) = clusters[a], clusters.pop(b)
        clusters[a] = na + nb, [x + y for x, y in zip(A, B, strict=True)]
        z = np.where(z == b, a, z)
        partitions.append(z)
        losses.append(loss)
    return partitions, losses


def label_matrix(seed, n=14, M=4, J=3, holes=0.0, whole=True):
    rng = np.random.default_rng(seed)
    codes = np.unique(rng.integers(0, J, (n, M)) - (rng.random((n, M)) < holes) * 9, axis=0).clip(-1)
    codes = np.unique(codes, axis=0)
    codes = codes[(codes >= 0).any(axis=1)]
    weights = rng.integers(1, 4, len(codes)).astype(float) if whole else rng.uniform(0.5, 3.0, len(codes))
    return codes, weights, np.full(M, J), rng.uniform(0.5, 2.0, M)


@pytest.mark.parametrize(("holes", "whole"), [(0.0, True), (0.3, True), (0.3, False), (0.8, True)])
def test_the_tree_is_that_of_a_naive_implementation(holes, whole, global_random_seed):
    for seed in range(4):
        codes, weights, J, v = label_matrix(global_random_seed + seed, holes=holes, whole=whole)
        tree = grow_tree(codes, weights, J, v)
        partitions, losses = naive_tree(codes, weights, J, v)
        np.testing.assert_allclose(tree.loss, losses, rtol=1e-9, atol=1e-9)
        for t, z in enumerate(partitions):
            found = cut_tree(tree, len(codes) - t)
            assert (np.unique(found, return_inverse=True)[1] == np.unique(z, return_inverse=True)[1]).all()


def test_the_loss_is_the_drop_of_mutual_information(global_random_seed):
    codes, weights, J, _ = label_matrix(global_random_seed + 3)
    tree = grow_tree(codes, weights, J, np.ones(4))
    n = weights.sum()

    def information(z):
        total = 0.0
        for m in range(4):
            table = np.zeros((z.max() + 1, 3))
            np.add.at(table, (z, codes[:, m]), weights / n)
            out = np.outer(table.sum(1), table.sum(0))
            total += (table[table > 0] * np.log(table[table > 0] / out[table > 0])).sum()
        return total / 4

    for k in range(2, 8):
        drop = information(cut_tree(tree, k)) - information(cut_tree(tree, k - 1))
        assert n * drop == pytest.approx(tree.loss[len(codes) - k], abs=1e-9)


@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_the_curve_is_that_of_all_pairs(holes, global_random_seed):
    codes, weights, J, v = label_matrix(global_random_seed + 5, n=12, holes=holes)
    tree = grow_tree(codes, weights, J, v)
    curve = cut_curve(tree, codes, weights, J, v, 6)
    rows = np.repeat(np.arange(len(codes)), weights.astype(int))
    Y = codes[rows]
    i, j = np.triu_indices(len(Y), 1)
    for row, k in enumerate(curve.n_clusters):
        z = cut_tree(tree, int(k))[rows]
        for m in range(Y.shape[1]):
            seen = (Y[i, m] >= 0) & (Y[j, m] >= 0)
            table = np.zeros((2, 2))
            np.add.at(
                table,
                ((z[i] == z[j])[seen].astype(int), (Y[i, m] == Y[j, m])[seen].astype(int)),
                1 / seen.sum(),
            )
            out = np.outer(table.sum(1), table.sum(0))
            direct = (table[table > 0] * np.log(table[table > 0] / out[table > 0])).sum()
            assert curve.information[row, m] == pytest.approx(direct, abs=1e-10)
        np.testing.assert_allclose(curve.margin[row], naive_margin(z, Y, curve.weights), atol=1e-10)
    np.testing.assert_allclose(curve.scores, curve.margin @ curve.weights / curve.weights.sum())


def naive_margin(z, Y, v):
    out = np.zeros(Y.shape[1])
    seen = Y >= 0
    for i in range(len(Y)):
        votes = {}
        for k in range(z.max() + 1):
            others = np.flatnonzero((z == k) & (np.arange(len(Y)) != i))
            both = seen[i] & seen[others]
            same = (both & (Y[others] == Y[i])).sum(axis=0)
            votes[k] = same, both.sum(axis=0)
        share = {k: (v @ s) / max(v @ b, 1e-300) for k, (s, b) in votes.items() if k != z[i] and v @ b > 0}
        for m in np.flatnonzero(seen[i]):
            same, both = votes[z[i]]
            out[m] += same[m] / both[m] if both[m] > 0 else 0.0
            if share:
                same, both = votes[max(share, key=share.get)]
                out[m] -= same[m] / both[m] if both[m] > 0 else 0.0
    return out / seen.sum(axis=0)


def test_information_of_pairs_lies_between_nothing_and_everything(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    together, inside, joined = np.sort(rng.integers(0, 50, (200, 3)), axis=1).T
    values = pair_information(together, inside, joined, 120.0)
    assert (values >= 0).all() and (values <= np.log(2) + 1e-12).all()


def test_resampled_cuts_are_wide_where_evidence_is_thin(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    codes, weights, J, _ = label_matrix(global_random_seed + 7, n=60, M=6, J=3)
    ones = np.ones(6)
    curve = cut_curve(grow_tree(codes, weights, J, ones), codes, weights, J, ones, 10)
    thin, thick = (resampled_cuts(curve, w, rng, 2000) for w in (1.0, 1e10))
    assert thick.max() == 1.0 and thick.argmax() == curve.scores.argmax()
    assert thin.max() < 1.0 and thin.sum() == pytest.approx(1.0)


def test_a_sample_keeps_the_shares(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    weights = rng.integers(1, 100, 5000).astype(float)
    counts = sample_signatures(weights, 500, rng)
    assert 0 < (counts > 0).sum() <= 500 and (counts == np.floor(counts)).all()
    groups = np.arange(5000) // 500  # neighbors in the order of rows: strata
    got = np.bincount(groups, counts) / counts.sum()
    np.testing.assert_allclose(got, np.bincount(groups, weights) / weights.sum(), atol=2 / counts.sum())


def test_one_pass_is_the_tempered_formula(global_random_seed):
    codes, weights, J, v = label_matrix(global_random_seed + 2, n=20, holes=0.2)
    z = np.arange(len(codes)) % 3
    found = temper(z, np.arange(len(codes)), codes, weights, J, v, 1.7, max_passes=1)
    offsets = np.concatenate([[0], np.cumsum(J)])
    log_joints = np.zeros((len(codes), 3))
    for i, row in enumerate(codes):
        present = v[row >= 0].sum()
        for k in range(3):
            own = z == k
            total = np.log((weights[own].sum() + 0.5) / (weights.sum() + 1.5))
            for m, c in enumerate(row):
                if c >= 0:
                    n_all = weights[own & (codes[:, m] >= 0)].sum()
                    n_same = weights[own & (codes[:, m] == c)].sum()
                    theta = (n_same + SMOOTHING) / (n_all + SMOOTHING * J[m])
                    total += min(1.0, 1.7 / present) * v[m] * np.log(theta)
            log_joints[i, k] = total
    scores = log_joint(codes, found.log_shares, found.log_probabilities, offsets, v, 1.7)
    np.testing.assert_allclose(scores, log_joints, atol=1e-10)
    R = np.exp(log_joints)
    R /= R.sum(axis=1, keepdims=True)
    assert (found.labels == R.argmax(axis=1)).all()
    np.testing.assert_allclose(
        label_certainty(found, codes, found.labels, chunk_rows=7), R.max(axis=1), atol=1e-10
    )
    two = R[:, :2] / R[:, :2].sum(axis=1, keepdims=True)  # a third cluster without rows is no cluster
    z = np.arange(len(codes)) % 2
    np.testing.assert_allclose(
        label_certainty(found, codes, z), np.take_along_axis(two, z[:, None], 1)[:, 0], atol=1e-10
    )
    np.testing.assert_allclose(found.sizes, weights @ R, atol=1e-10)
    level = offsets[1] + 2
    np.testing.assert_allclose(found.counts[level], (weights * (codes[:, 1] == 2)) @ R, atol=1e-10)


def test_agreement_is_the_mean_share_of_votes_with_the_others(global_random_seed):
    codes, weights, J, v = label_matrix(global_random_seed + 4, n=15, holes=0.2)
    z = np.arange(len(codes)) % 2
    rows = np.repeat(np.arange(len(codes)), weights.astype(int))
    Y, full = codes[rows], z[rows]
    found = own_agreement(z, codes, J, weights, v)[rows]
    for i in range(len(Y)):
        others = np.flatnonzero((full == full[i]) & (np.arange(len(Y)) != i))
        both = (Y[others] >= 0) & (Y[i] >= 0)
        same = both & (Y[others] == Y[i])
        assert found[i] == pytest.approx((same @ v).sum() / (both @ v).sum(), abs=1e-12)


def test_coarser_cuts_are_the_cuts_of_the_tree(global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    for _ in range(20):
        s, J = int(rng.integers(2, 30)), rng.integers(2, 6, size=3)
        codes = np.unique(np.stack([rng.integers(0, j, s) for j in J], axis=1), axis=0)
        if len(codes) < 2:
            continue
        tree = grow_tree(codes, rng.integers(1, 5, len(codes)).astype(float), J, np.ones(3))
        largest = int(rng.integers(2, len(codes) + 1))
        expected = [cut_tree(tree, K) for K in range(2, largest + 1)]
        np.testing.assert_array_equal(coarser_cuts(tree, largest), expected)
