"""Array functions of full-covariance Gaussians: posteriors, modes, expectations and draws of all clusters at once."""

from __future__ import annotations

import contextlib
import math

import numpy as np
from scipy.special import digamma, multigammaln, polygamma
from scipy.stats import wishart

from partita.families.contract import (
    breadth,
    constrained,
    draw,
    expect,
    flat,
    held,
    learn,
    log_prior,
    mode,
    n_parameters,
    sample_shape,
    simulate,
    summarize,
    unconstrained,
    widened,
)
from partita.families.gaussian import LOG_2PI, RESOLUTION, VARIANCE_FLOOR
from partita.families.gaussian_full import GaussianFull, scale_entry
from partita.families.hyper import newton_root

SIZE, SIZE_SPREAD = 0.2, 1.5  # of the hyperprior of the size of a scale matrix that is learned as a whole
ROUNDING = 1e-13  # share of the largest eigenvalue; smaller ones are not told from zero
SIZE_BREADTH = 2.0  # of the hyperprior of the size where the shape is held
SIZE_GRID = np.linspace(-3.0, 3.0, 2001)  # in units of the spread


def _unpack(S: np.ndarray, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts [K], sums [K, p] and second moments [K, p, p] of packed statistics."""
    rows, columns = np.tril_indices(p)
    M = np.zeros((S.shape[1], p, p))
    M[:, rows, columns] = S[1 + p :].T
    M[:, columns, rows] = S[1 + p :].T
    return S[0], S[1 : 1 + p].T, M


def _posteriors(lik: GaussianFull, S: np.ndarray):
    """Posterior means [K, p], kappa [K], nu [K] and scale matrices [K, p, p]."""
    n, sums, M = _unpack(S, len(lik.m))
    kappa = lik.kappa + n
    divisor = np.where(kappa > 0, kappa, 1.0)
    means = np.where(n[:, None] > 0, sums / np.where(n > 0, n, 1.0)[:, None], lik.m)
    shift = (lik.kappa * n / divisor)[:, None, None]
    a, b = means[:, :, None], means[:, None, :]
    Psi = scale_entry.py_func(lik.Psi, M, n[:, None, None], shift, a, b, lik.m[:, None], lik.m)
    return (lik.kappa * lik.m + sums) / divisor[:, None], kappa, lik.nu + n, Psi


def _natural(m: np.ndarray, precision: np.ndarray, log_det: np.ndarray, extra: np.ndarray | float = 0.0):
    """Packed natural parameters from means, (expected) precisions and (expected) log determinants."""
    K, p = m.shape
    rows, columns = np.tril_indices(p)
    pull = np.einsum("kab,kb->ka", precision, m)
    theta = np.empty((1 + p + len(rows), K))
    theta[0] = 0.5 * log_det - 0.5 * p * LOG_2PI - 0.5 * (np.einsum("ka,ka->k", pull, m) + extra)
    theta[1 : 1 + p] = pull.T
    theta[1 + p :] = (-precision[:, rows, columns] * np.where(rows == columns, 0.5, 1.0)).T
    return theta


def moments(theta: np.ndarray, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Means [K, p] and precisions [K, p, p] of packed natural parameters."""
    rows, columns = np.tril_indices(p)
    precision = np.zeros((theta.shape[1], p, p))
    entries = -theta[1 + p :].T * np.where(rows == columns, 2.0, 1.0)
    precision[:, rows, columns] = entries
    precision[:, columns, rows] = entries
    return np.linalg.solve(precision, theta[1 : 1 + p].T[..., None])[..., 0], precision


def _spectra(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of symmetric matrices, kept above rounding error, and their eigenvectors."""
    values, vectors = np.linalg.eigh(A)
    return np.maximum(values, np.maximum(values[:, -1:], 1e-300) * ROUNDING), vectors


def _inverse(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inverses and log determinants of symmetric matrices, with eigenvalues kept above rounding error."""
    values, vectors = _spectra(A)
    return (vectors / values[:, None, :]) @ vectors.transpose(0, 2, 1), np.log(values).sum(axis=1)


def _factored(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Symmetric matrices and their Cholesky factors; eigenvalues that rounding has made too small are increased.

    With little more than p - 1 degrees of freedom a drawn precision is often singular in double precision: the
    variance of one direction is 1e16 times that of another.
    """
    pivots = np.arange(A.shape[1])
    with contextlib.suppress(np.linalg.LinAlgError):
        L = np.linalg.cholesky(A)
        if (L[:, pivots, pivots] ** 2 > ROUNDING * A[:, pivots, pivots]).all():
            return A, L
    values, vectors = _spectra(A)
    A = (vectors * values[:, None, :]) @ vectors.transpose(0, 2, 1)
    return A, np.linalg.cholesky(A)


@widened.register(GaussianFull)
def _(lik, S):
    """Wishart posteriors without an eigenvalue of the mean precision above 1 / RESOLUTION.

    Eigenvalues of the scale matrix that are too small are increased; the eigenvectors do not change.
    """
    gain = np.zeros((1, S.shape[1]))
    narrowest = np.linalg.eigvalsh(lik.Psi)[0]
    active = np.flatnonzero(narrowest < RESOLUTION * (lik.nu + S[0]))
    if len(active) == 0:
        return S, gain  # the prior bounds the precision
    _, _, nu, Psi = _posteriors(lik, S[:, active])
    values, vectors = np.linalg.eigh(Psi)
    wide = np.maximum(values, RESOLUTION * nu[:, None])
    added = (vectors * (wide - values)[:, None, :]) @ vectors.transpose(0, 2, 1)
    rows, columns = np.tril_indices(len(lik.m))
    S = S.copy()
    S[1 + len(lik.m) :, active] += added[:, rows, columns].T
    gain[0, active] = 0.5 * nu * (1.0 - values / wide).sum(axis=1)
    return S, gain


@expect.register(GaussianFull)
def _(lik, S):
    p = len(lik.m)
    m, kappa, nu, Psi = _posteriors(lik, S)
    inverse, log_det = _inverse(Psi)
    return _natural(m, nu[:, None, None] * inverse, _expected_log_det(nu, log_det, p), p / kappa)


def _expected_log_det(nu: np.ndarray, log_det: np.ndarray, p: int) -> np.ndarray:
    """Posterior mean of the log determinant of the precision."""
    return digamma(0.5 * (nu[:, None] - np.arange(p))).sum(axis=1) + p * math.log(2) - log_det


@mode.register(GaussianFull)
def _(lik, S):
    p = len(lik.m)
    m, _, nu, Psi = _posteriors(lik, S)
    weight = nu + p + 2
    empty = weight <= 0
    cov = np.where(empty[:, None, None], np.eye(p), Psi / np.where(empty, 1.0, weight)[:, None, None])
    values, vectors = np.linalg.eigh(cov)
    values = np.maximum(values, VARIANCE_FLOOR)  # the maximizer among covariances at least this wide
    precision = (vectors / values[:, None, :]) @ vectors.transpose(0, 2, 1)
    return _natural(m, precision, -np.log(values).sum(axis=1))


@flat.register(GaussianFull)
def _(lik):
    p = len(lik.m)
    return GaussianFull(np.zeros(p), 0.0, -(p + 2.0), np.zeros((p, p)), 0.0)


@log_prior.register(GaussianFull)
def _(lik, theta):
    if lik.kappa == 0:  # flat
        return np.zeros(theta.shape[1])
    p = len(lik.m)
    m, precision = moments(theta, p)
    log_det = np.linalg.slogdet(precision)[1]
    delta = m - lik.m
    out = 0.5 * lik.nu * lik.log_det - 0.5 * lik.nu * p * math.log(2) - multigammaln(0.5 * lik.nu, p)
    out = out + 0.5 * (lik.nu + p + 1) * log_det - 0.5 * np.einsum("ab,kba->k", lik.Psi, precision)
    out += 0.5 * p * math.log(lik.kappa) - 0.5 * p * LOG_2PI + 0.5 * log_det
    return out - 0.5 * lik.kappa * np.einsum("ka,kab,kb->k", delta, precision, delta)


@draw.register(GaussianFull)
def _(lik, S, rng):
    p = len(lik.m)
    m, kappa, nu, Psi = _posteriors(lik, S)
    K = len(nu)
    # Bartlett: precision = C A A' C' with C C' = Psi^-1
    A = np.tril(rng.standard_normal((K, p, p)), -1)
    diagonal = np.arange(p)
    A[:, diagonal, diagonal] = np.sqrt(2 * rng.standard_gamma(0.5 * (nu[:, None] - diagonal)))
    root = np.linalg.inv(_factored(Psi)[1]).transpose(0, 2, 1) @ A
    drawn = root @ root.transpose(0, 2, 1)
    precision, lower = _factored(drawn)
    root = root if precision is drawn else lower
    noise = np.linalg.solve(root.transpose(0, 2, 1), rng.standard_normal((K, p, 1)))[..., 0]
    log_det = 2.0 * np.log(lower[:, diagonal, diagonal]).sum(axis=1)
    return _natural(m + noise / np.sqrt(kappa)[:, None], precision, log_det)


@simulate.register(GaussianFull)
def _(lik, theta, z, rng):
    p = len(lik.m)
    m, precision = moments(theta, p)
    upper = _factored(precision)[1].transpose(0, 2, 1)
    noise = rng.standard_normal((len(z), p, 1))
    return m[z] + np.linalg.solve(upper[z], noise)[..., 0]


@learn.register(GaussianFull)
def _(lik, S, n):
    """One EM step: the hyper-parameters that best explain the posteriors of the clusters in use."""
    if np.count_nonzero(n >= 1.0) < 2:
        return lik
    p = len(lik.m)
    m, kappa, nu, Psi = _posteriors(lik, S[:, n >= 1.0])
    inverse, log_det = _inverse(Psi)
    precision = nu[:, None, None] * inverse
    mean_precision = precision.mean(axis=0)
    m0 = np.linalg.solve(mean_precision, np.einsum("kab,kb->a", precision, m) / len(nu))
    delta = m - m0
    distance = p / kappa + np.einsum("ka,kab,kb->k", delta, precision, delta)
    surplus = _expected_log_det(nu, log_det, p).mean() - np.linalg.slogdet(mean_precision)[1]

    def slope(log_nu):
        half = 0.5 * np.exp(log_nu) - 0.5 * np.arange(p)
        first = p * (log_nu - math.log(2)) + surplus - digamma(half).sum()
        return first, p - 0.5 * np.exp(log_nu) * polygamma(1, half).sum()

    nu0 = float(np.exp(newton_root(slope, np.log([lik.nu]), math.log(p + 0.5), math.log(p + 200.0), 8))[0])
    values, vectors = np.linalg.eigh(mean_precision)
    # repeated values would let the scale go to zero
    scale = (vectors * np.maximum(1 / values, VARIANCE_FLOOR)) @ vectors.T
    kappa0 = float(np.clip(p / distance.mean(), 1e-4, 10.0))
    return GaussianFull.of(m0, kappa0, nu0, nu0 * scale, lik.learns_shape)


@summarize.register(GaussianFull)
def _(lik, S):
    p = len(lik.m)
    m, _, nu, Psi = _posteriors(lik, S)
    return {"means": m, "covariances": Psi / np.maximum(nu - p - 1, 1.0)[:, None, None]}


@sample_shape.register(GaussianFull)
def _(lik, S, rng):
    """One Gibbs step of ``L`` in ``Psi = (nu - p + 1) L``.

    ``L ~ Wishart(p + 1, s I / (p + 1))`` with ``log s ~ N(log SIZE, SIZE_SPREAD^2)``. The parameters of the clusters in
    use are drawn and forgotten again: given their covariances, L has a Wishart distribution.
    """
    if not lik.learns_shape:
        return lik
    p = len(lik.m)
    freedom = lik.nu - p + 1.0
    size = _draw_size(lik.Psi / freedom, rng)
    used = np.ascontiguousarray(S[:, S[0] > 0])
    precisions = moments(draw(lik, used, rng), p)[1]
    inverse_scale = (p + 1.0) / size * np.eye(p) + freedom * precisions.sum(axis=0)
    scale = np.linalg.inv(inverse_scale)
    L = np.atleast_2d(
        wishart.rvs(p + 1.0 + len(precisions) * lik.nu, 0.5 * (scale + scale.T), random_state=rng)
    )
    return GaussianFull.of(lik.m, lik.kappa, lik.nu, freedom * L, lik.learns_shape)


def _draw_size(L: np.ndarray, rng: np.random.Generator) -> float:
    """A draw of s given L, by inversion on a fine grid of its logarithm."""
    p = len(L)
    log_s = np.log(SIZE) + SIZE_SPREAD * SIZE_GRID
    log_p = -0.5 * p * (p + 1) * log_s - 0.5 * (p + 1) * np.trace(L) * np.exp(-log_s) - 0.5 * SIZE_GRID**2
    share = np.cumsum(np.exp(log_p - log_p.max()))
    return float(np.exp(np.interp(rng.random() * share[-1], share, log_s)))


@n_parameters.register(GaussianFull)
def _(lik):
    p = len(lik.m)
    return p + p * (p + 1) // 2


@unconstrained.register(GaussianFull)
def _(lik):
    """Location, its weight, degrees of freedom, and the size of a cluster (the scale matrix per degree of freedom).

    The shape of the scale matrix stays fixed, unless it is learned; then the last entry is the logarithm of its
    Cholesky factor: logs of the diagonal, other entries relative to the diagonal of their row.
    """
    p = len(lik.m)
    if lik.learns_shape:
        L = np.linalg.cholesky(lik.Psi / (lik.nu - p + 1.0))
        diagonal = np.diag(L)
        entries = L / diagonal[:, None]
        entries[np.diag_indices(p)] = np.log(diagonal)
        size = entries[np.tril_indices(p)]
    else:
        size = np.array([lik.log_det / p - np.log(lik.nu - p + 1.0)])
    return {
        "m": lik.m,
        "kappa": np.log([lik.kappa]),
        "nu": np.log([lik.nu - p + 1.0]),
        "Psi": size,
    }


@held.register(GaussianFull)
def _(lik):
    """The law of the means: learned, it moves onto the tightest cluster, whose width it is measured in.

    A scale matrix that is learned as a whole has a step of its own, `sample_shape`.
    """
    return ("m", "kappa", "Psi") if lik.learns_shape else ("m", "kappa")


@breadth.register(GaussianFull)
def _(lik, name):
    """Columns are divided by their whole deviation, so how large clusters are depends on how many there are."""
    return SIZE_BREADTH if name == "Psi" else 1.0


@constrained.register(GaussianFull)
def _(lik, name, value):
    p = len(lik.m)
    if name == "m":
        return lik._replace(m=value)
    number = float(np.exp(value[0]))  # unless all of the scale matrix is given
    if name == "kappa":
        return lik._replace(kappa=number)
    freedom = lik.nu - p + 1.0
    if name == "nu":
        return GaussianFull.of(
            lik.m, lik.kappa, number + p - 1.0, lik.Psi * (number / freedom), lik.learns_shape
        )
    if lik.learns_shape:
        L = np.zeros((p, p))
        L[np.tril_indices(p)] = value
        diagonal = np.exp(np.diag(L))
        L[np.diag_indices(p)] = 1.0
        L *= diagonal[:, None]
        return GaussianFull.of(lik.m, lik.kappa, lik.nu, freedom * L @ L.T, lik.learns_shape)
    return GaussianFull.of(lik.m, lik.kappa, lik.nu, lik.Psi * (number * freedom / np.exp(lik.log_det / p)))
