"""Erased blocks: compiled kernels compute from them what the same source computes in the interpreter from the blocks
themselves, and are compiled once for all tables."""

import contextlib

import numpy as np
import pytest

from partita import dispatch
from partita.dispatch import interpreted, kernel
from partita.engines.gibbs import sweep
from partita.engines.gibbs.split_merge import run_moves
from partita.engines.passes.live import PORTS, add_row, erase, make_live, rebuild, score_row, sides_of
from partita.erasure import _check_arguments, check_records
from partita.families import FAMILIES, n_rows, take
from partita.partitions import DirichletProcess

MIXES = [
    ("gaussian",),
    ("categorical", "poisson"),
    ("gaussian_full", "bernoulli", "multinomial"),
    ("ordinal", "gaussian"),
]


def live_blocks(mix, dtype=np.float64):
    """Blocks of the registry's examples in three slots, all rows seated."""
    rng = np.random.default_rng(0)
    examples = [FAMILIES[name].examples(rng)[0] for name in mix]
    sizes = [n_rows(data) for _, data in examples]
    blocks = [make_live(family, data, 4, dtype) for family, data in examples]
    z = np.arange(min(sizes)) % 3
    return blocks, z


@kernel
def move_and_score(blocks, i, K, out):
    add_row(blocks, i, 0, 1.0)
    score_row(blocks, i, K, out)


def seat_all(mix, dtype):
    blocks, z = live_blocks(mix, dtype)
    blocks = [live._replace(data=trimmed(live.data, len(z))) for live in blocks]
    rebuild(blocks, z)
    return tuple(blocks)


def trimmed(data, N):
    return take(data, np.arange(N))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("mix", MIXES, ids="+".join)
def test_erased_blocks_compute_what_the_interpreter_does(mix, dtype):
    plain, erased = seat_all(mix, dtype), seat_all(mix, dtype)
    tolerance = 1e-5 if dtype == np.float32 else 1e-11
    for i in range(3):
        one, two = np.zeros(4, dtype), np.zeros(4, dtype)
        with interpreted():
            move_and_score(plain, i, 3, one)
        move_and_score(erase(erased), i, 3, two)
        np.testing.assert_allclose(one, two, rtol=tolerance)
    for a, b in zip(plain, erased, strict=True):
        np.testing.assert_allclose(a.S, b.S, rtol=1e-13)
        np.testing.assert_allclose(a.C, b.C, rtol=tolerance, atol=tolerance)


def test_chains_draw_the_same_as_in_the_interpreter():
    rng = np.random.default_rng(1)
    N, prior = 80, DirichletProcess(1.0)
    X = rng.normal(size=(N, 2)) + 3 * (np.arange(N) % 3)[:, None]
    codes = rng.integers(3, size=(N, 3)).astype(np.int8)
    blocks = [
        FAMILIES["gaussian"].block(X, list("ab"), np.ones(N)),
        FAMILIES["categorical"].block(codes, list("cde"), np.ones(N), n_levels=[3, 3, 3]),
    ]
    labels = []
    for context, form in ((interpreted, tuple), (contextlib.nullcontext, erase)):
        seating = sweep.grow(sweep.seat(blocks, np.zeros(N, int)))
        source, rows, counts = np.random.default_rng(2), np.arange(N), np.zeros(3, np.int64)
        with context():
            for _ in range(10):
                args = (prior, *seating[1:])
                u = source.random(N)
                assert sweep.sweep(form(seating.blocks), *args, rows, u, 0, sweep.NO_LIMIT) == N
                sides = form(sides_of(seating.blocks))
                done = run_moves(form(seating.blocks), sides, *args, source, 5, 0, sweep.NO_LIMIT, counts)
                assert done == 5
        labels.append(sweep.labels(seating))
    assert len(np.unique(labels[0])) > 1
    np.testing.assert_array_equal(*labels)


def test_two_mixes_share_their_kernels():
    move_and_score(erase(seat_all(MIXES[1], np.float64)), 0, 3, np.zeros(4))
    before = len(move_and_score.compiled.overloads)
    move_and_score(erase(seat_all(MIXES[2], np.float64)), 0, 3, np.zeros(4))
    move_and_score(erase(seat_all(("exponential", "bernoulli"), np.float64)), 0, 3, np.zeros(4))
    assert len(move_and_score.compiled.overloads) == before


def test_read_only_data_need_no_compilation_of_their_own():
    blocks = seat_all(("categorical",), np.float64)
    out = np.zeros(4)
    move_and_score(erase(blocks), 0, 3, out)
    known = len(PORTS._addresses)
    blocks[0].data.flags.writeable = False
    again = np.zeros(4)
    move_and_score(erase(blocks), 0, 3, again)
    assert len(PORTS._addresses) == known


def test_the_tuple_itself_where_nothing_is_compiled():
    with interpreted():
        blocks = seat_all(("bernoulli",), np.float64)
        assert erase(blocks) == blocks


def test_erased_blocks_keep_their_arrays_alive():
    erased = erase(seat_all(("categorical",), np.float64))
    assert erased.records.base.obj.owner[0].S.shape[1] == 4


def test_row_84_records_are_checked_before_they_are_called(monkeypatch):
    """The mode for fuzzers: a record that is not that of its block is found before compiled code follows it."""
    monkeypatch.setattr(dispatch, "_checks", [_check_arguments])
    blocks = seat_all(("categorical",), np.float64)
    good = erase(blocks)
    move_and_score(good, 0, 3, np.zeros(4))
    records = erase(blocks)
    records.records[4] += 8  # another address of an array
    elsewhere = good._replace(at=good.at + 8)
    unknown = good._replace(calls=good.calls + 1)
    orphan = good._replace(records=good.records.copy())
    for bad in (records, elsewhere, unknown, orphan):
        with pytest.raises(RuntimeError, match="erased blocks"):
            move_and_score(bad, 0, 3, np.zeros(4))
    check_records(good)
