import numpy as np
import pytest

from partita.partitions import DirichletProcess, log_eppf
from partita.posterior import credible_ball, loss_matrix, point_estimate


@pytest.fixture(scope="module")
def exact_posterior(partitions_of_8):
    """A posterior known in full: a Dirichlet process prior with a Gaussian likelihood of eight numbers."""
    x = np.array([-2.1, -1.9, -1.7, 0.1, 0.3, 1.8, 2.2, 2.3])
    log_p = []
    for z in partitions_of_8:
        sizes = np.bincount(z).astype(float)
        sums = np.bincount(z, weights=x)
        # unit variance 0.25 within, means with variance 4: both integrated out, up to a constant
        marginal = -0.5 * np.log(1 + 16 * sizes) + 0.5 * sums**2 / 0.0625 / (sizes / 0.25 + 0.25)
        log_p.append(log_eppf(DirichletProcess(1.0), sizes, len(sizes)) + marginal.sum())
    p = np.exp(np.array(log_p) - max(log_p))
    return p / p.sum()


@pytest.mark.parametrize("loss", ["vi", "binder"])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_ball_holds_its_mass_and_no_smaller_one_does(
    loss, level, partitions_of_8, exact_posterior, global_random_seed
):
    estimate = point_estimate(partitions_of_8, loss, weights=exact_posterior, random_state=global_random_seed)
    ball = credible_ball(partitions_of_8, estimate.labels, level=level, loss=loss, weights=exact_posterior)
    distances = loss_matrix(estimate.labels[None], partitions_of_8, loss)[0]
    inside = distances <= ball.radius + 1e-10
    assert ball.mass == pytest.approx(exact_posterior[inside].sum()) and ball.mass >= level
    assert exact_posterior[distances < ball.radius - 1e-10].sum() < level
    assert np.allclose(ball.distances, distances)


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_the_bounds_are_the_furthest_of_the_coarsest_and_the_finest(
    loss, partitions_of_8, exact_posterior, global_random_seed
):
    center = point_estimate(
        partitions_of_8, loss, weights=exact_posterior, random_state=global_random_seed
    ).labels
    ball = credible_ball(partitions_of_8, center, loss=loss, weights=exact_posterior)
    inside = partitions_of_8[ball.distances <= ball.radius + 1e-10]
    d = loss_matrix(center[None], inside, loss)[0]
    K = inside.max(axis=1) + 1
    for bound, chosen in (
        (ball.horizontal, np.full(len(K), True)),
        (ball.upper_vertical, K.min() == K),
        (ball.lower_vertical, K.max() == K),
    ):
        furthest = chosen & (d >= d[chosen].max() - 1e-10)
        assert {tuple(z) for z in bound} == {tuple(z) for z in inside[furthest]}


def test_balls_of_draws_cover(partitions_of_8, exact_posterior, global_random_seed):
    """The ball of 400 draws has about its level of the true posterior: a fresh draw falls into it that often.

    Over 60 balls; the true mass of the ball of a level of 0.9 has a standard deviation of at most 0.015 each, the mean
    0.002, and the partitions are discrete so that the ball holds at least its level. False alarm rate below 1e-6.
    """
    rng = np.random.default_rng(global_random_seed)
    masses = []
    for _ in range(60):
        draws = partitions_of_8[rng.choice(len(partitions_of_8), size=400, p=exact_posterior)]
        ball = credible_ball(draws, draws[0], level=0.9)
        d = loss_matrix(draws[:1], partitions_of_8)[0]
        masses.append(exact_posterior[d <= ball.radius + 1e-10].sum())
    assert np.mean(masses) >= 0.89


def test_permuting_draws_and_names_changes_nothing(noisy_copies, global_random_seed):
    rng = np.random.default_rng(global_random_seed)
    draws, z = noisy_copies(rng, 50, 40, 4, 0.3)
    order = rng.permutation(50)
    first, second = credible_ball(draws, z), credible_ball(7 - draws[order], 9 - z)
    assert first.radius == pytest.approx(second.radius)
    assert np.array_equal(first.horizontal, second.horizontal)
    assert np.allclose(first.distances[order], second.distances)


def test_nineteen_of_twenty_draws_are_95_per_cent():
    draws = [[0, 0, 0]] * 19 + [[0, 1, 2]]
    ball = credible_ball(draws, [0, 0, 0])
    assert (ball.radius, ball.mass) == (0.0, pytest.approx(0.95))
    with pytest.raises(ValueError, match="above 0 and at most 1"):
        credible_ball(draws, [0, 0, 0], level=1.5)
