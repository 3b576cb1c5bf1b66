"""Steps of real columns broken on purpose: the laws that they obey must fail."""

import math

import numpy as np
import pytest

from partita.families import Power, Signal, gaussian_full_arrays, ties
from partita.families.codings import Lumps, Values
from tests.families import test_codings, test_scale_matrix, test_signal, test_ties


def without_the_unit(right):
    return lambda power, x: right(power, x) + math.log(power.unit)


def without_the_slope(right):
    return lambda coding, X: (right(coding, X)[0], np.zeros(len(X)))


def without_the_widths(right):
    return lambda signal, Z: right(signal, Z) + ~np.isnan(Z) @ np.log(signal.widths)


def filled_with_zeros(right):
    return lambda signal, U: right(signal, U)._replace(U=np.nan_to_num(U))


def lumps_only(right):
    return lambda lumps, X: (right(lumps, X)[0], np.zeros(len(X)))


def of_any_size(right):
    return lambda L, rng: right(4.0 * L, rng)


def precisions_that_are_halved(right):
    return lambda natural, p: tuple(0.5 * part for part in right(natural, p))


def with_an_exponent_of_no_likelihood(right):
    return lambda values, weights: right(values, weights)._replace(exponent=0.5)


def whatever_the_weights(right):
    return lambda values, weights: right(values, np.ones(len(values)))


def from_the_value_on(right):
    return lambda distinct: np.append(distinct, 2 * distinct[-1] - distinct[-2])


def the_same_noise_for_all(right):
    return lambda moments, n_factors, **options: right(moments, n_factors, **{**options, "own_noise": False})


def low_rank(law):
    return lambda rng: law(test_signal.make_low_rank(rng), rng)


BROKEN = [  # (owner, what is broken, how, the law that catches it)
    (Power, "log_slope", without_the_unit,
     lambda rng: test_codings.test_a_power_is_increasing_and_has_an_inverse_and_a_slope(test_codings.POWERS[1], rng)),
    (Values, "encode", without_the_slope, test_codings.test_values_come_back_and_their_density_has_the_jacobian),
    (Lumps, "encode", lumps_only, test_codings.test_values_beside_a_lump_have_a_density),
    (Signal, "log_rest", without_the_widths,
     low_rank(test_signal.test_scores_and_rest_are_the_density_of_whole_rows)),
    (Signal, "completed", filled_with_zeros,
     low_rank(test_signal.test_missing_cells_have_the_density_of_the_observed_ones)),
    (gaussian_full_arrays, "_draw_size", of_any_size, test_scale_matrix.test_the_size_is_drawn_given_the_shape),
    (gaussian_full_arrays, "moments", precisions_that_are_halved, test_scale_matrix.test_the_step_keeps_the_prior),
    (test_codings, "fit_power", with_an_exponent_of_no_likelihood,
     test_codings.test_the_fitted_power_undoes_the_exponential),
    (test_codings, "find_lump", whatever_the_weights, test_codings.test_lumps_are_found_whatever_the_weights),
    (ties, "cell_ends", from_the_value_on,
     test_ties.test_cells_hold_the_values_before_rounding_and_do_not_overlap),
    (test_signal, "factors_of_moments", the_same_noise_for_all,
     test_signal.test_factors_are_those_of_maximum_likelihood),
]  # fmt: skip


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize(
    ("owner", "name", "bug", "law"), BROKEN, ids=[bug.__name__ for _, _, bug, _ in BROKEN]
)
def test_a_broken_step_is_caught(owner, name, bug, law, rng, monkeypatch):
    law(rng)
    monkeypatch.setattr(owner, name, bug(getattr(owner, name)))
    with pytest.raises(AssertionError):
        law(rng)
