"""Packed columns give the statistics of the columns they stand for."""

import numpy as np
import pytest

from partita.dispatch import interpreted
from partita.engines.passes import packing
from partita.engines.passes.packing import PackedBlock
from partita.engines.passes.rows import Parameters, collect, n_stats, pack
from partita.families import FAMILIES
from partita.families.contract import expect, flat, mode
from partita.mixture import Mixture

LEVELS = [2, 5, 3, 9, 40, 2, 2, 300]


@pytest.fixture
def blocks(monkeypatch, global_random_seed):
    monkeypatch.setattr(packing, "MIN_ROWS", 1)
    rng = np.random.default_rng(global_random_seed)
    X = np.column_stack([rng.integers(-1, levels, size=90) for levels in LEVELS]).astype(np.int16)
    Y = rng.integers(-1, 2, size=(90, 7)).astype(np.int8)
    w = np.ones(90)
    return (
        FAMILIES["categorical"].block(X, range(len(LEVELS)), w, n_levels=LEVELS),
        FAMILIES["bernoulli"].block(Y, range(7), w),
        FAMILIES["gaussian"].block(rng.normal(size=(90, 2)), range(2), w),
    )


@pytest.mark.parametrize("point", [expect, mode])
def test_a_pass_over_packed_columns_is_a_pass_over_the_columns(blocks, point, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    packed = pack(blocks, 90)
    assert [isinstance(block, PackedBlock) for block in packed] == [True, True, False]
    assert packed[0].codes.shape[1] < len(LEVELS) and packed[1].codes.shape == (90, 2)
    # maximum likelihood of few objects: many probabilities are exactly zero
    S = [rng.poisson(0.3, size=(n_stats(block.family), 4)).astype(float) for block in blocks]
    families = [flat(block.family) if point is mode else block.family for block in blocks]
    parameters = Parameters(np.log([0.1, 0.2, 0.3, 0.4]), tuple(map(point, families, S)))
    weights = rng.random(90)
    with interpreted():
        plain, walked = collect(blocks, weights, parameters), collect(packed, weights, parameters)
    assert walked.log_likelihood == pytest.approx(plain.log_likelihood)
    assert walked.entropy == pytest.approx(plain.entropy)
    for s, t in zip(plain.S, walked.S, strict=True):
        np.testing.assert_allclose(t, s, atol=1e-12)


def test_fits_agree_with_and_without_packing(monkeypatch, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    z = rng.integers(3, size=400)
    X = np.where(rng.random((400, 6)) < 0.8, z[:, None], rng.integers(3, size=(400, 6)))
    fits = []
    for fewest in (1, 10**9):
        monkeypatch.setattr(packing, "MIN_ROWS", fewest)
        fits.append(Mixture("categorical", inference="vb", random_state=global_random_seed, n_init=1).fit(X))
    assert np.array_equal(fits[0].labels_, fits[1].labels_)
    assert fits[0].lower_bound_ == pytest.approx(fits[1].lower_bound_)


def test_small_tables_are_left_alone(blocks, monkeypatch):
    monkeypatch.setattr(packing, "MIN_ROWS", 91)
    assert pack(blocks, 90) == blocks
