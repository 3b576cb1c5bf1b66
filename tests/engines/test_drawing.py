import numpy as np
import pytest

from partita.engines.gibbs.drawing import draw_slot, exponentials, whole_blocks


def drawn(log_weights, u, likely, dtype=float):
    room = whole_blocks(len(log_weights))
    lp, w = np.full(room, np.nan, dtype), np.empty(room)
    lp[: len(log_weights)] = log_weights
    return draw_slot(lp, len(log_weights), u, w, likely)


def test_exponentials_are_those_of_the_library():
    x = np.concatenate([[0.0, -1e-300, -0.34657359], -np.geomspace(1e-9, 39.99, 2000)])
    w = np.empty(len(x))
    exponentials(x, 0.0, len(x), w)
    np.testing.assert_allclose(w, np.exp(x), rtol=4e-13)
    exponentials(np.array([-40.0, -1e5, -np.inf]), 0.0, 3, w)
    assert np.all(w[:3] == 0.0)


@pytest.mark.parametrize("likely", [-1, 0, 4, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_uniforms_on_a_grid_are_shared_out_by_the_weights(likely, dtype):
    p = np.array([0.05, 0.1, 0.0, 0.2, 0.3, 0.05, 0.0, 0.1, 0.2])
    with np.errstate(divide="ignore"):
        log_weights = np.log(p) - 700.0  # only differences count
    grid = (np.arange(2000) + 0.5) / 2000
    found = np.bincount([drawn(log_weights, u, likely, dtype) for u in grid], minlength=9)
    assert np.all(np.abs(found - 2000 * p) <= 1 + (dtype == np.float32))


@pytest.mark.parametrize("likely", [-1, 1])
@pytest.mark.parametrize("u", [0.0, np.nextafter(1.0, 0.0)])
def test_an_impossible_seat_is_never_drawn(u, likely):
    assert drawn([-np.inf, 0.0, -np.inf], u, likely) == 1


def test_the_slots_past_the_last_do_not_count():
    lp, w = np.full(16, 50.0), np.empty(16)
    lp[:9] = 0.0
    assert draw_slot(lp, 9, np.nextafter(1.0, 0.0), w, -1) == 8
