"""Scores of probabilistic models."""

import numpy as np
from numpy.typing import ArrayLike


def perplexity(log_likelihood: ArrayLike, n_cells: float) -> float:
    """Inverse of the geometric mean probability of an observed cell: exp(-log likelihood / cells).

    Lower is better. For labels (probabilities, not densities) it is at least 1, and a model no worse
    than uniform stays at or below the number of labels. Report with it which likelihood was
    taken: of training or held-out cells, and which parameters were integrated out.

    Parameters
    ----------
    log_likelihood : float or array-like of float
        Natural log likelihood, in total or in parts, which are summed. Minus infinity gives infinity.
    n_cells : int
        Number of observed cells; missing ones do not count.

    Returns
    -------
    float

    Examples
    --------
    >>> round(perplexity(12 * np.log(0.25), n_cells=12), 6)
    4.0
    """
    total = float(np.sum(np.asarray(log_likelihood, dtype=np.float64)))
    if np.isnan(total):
        raise ValueError("log_likelihood is NaN: perplexity needs a number or minus infinity")
    if not n_cells > 0:
        raise ValueError(f"n_cells is {n_cells}: perplexity needs at least one observed cell")
    with np.errstate(over="ignore"):
        return float(np.exp(-total / n_cells))
