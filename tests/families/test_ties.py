"""The cells of tied values."""

import numpy as np

from partita.families.ties import find_ties


def test_cells_hold_the_values_before_rounding_and_do_not_overlap(rng):
    """In columns that were rounded to different numbers of digits; the cells of a column lie side by side."""
    X = rng.normal(size=(2000, 2)) * np.array([1.0, 40.0])
    rounded = np.column_stack([np.round(X[:, 0], 1), np.round(X[:, 1] / 5) * 5])
    ties = find_ties(rounded, np.ones(len(X)), lambda values: values / np.array([1.0, 40.0]))
    assert list(ties.columns) == [0, 1]
    for d, unit in enumerate((1.0, 40.0)):
        tied = ~np.isnan(ties.low[:, d])
        assert tied.mean() > 0.9  # all but values that occur once
        low, high, before = ties.low[tied, d], ties.high[tied, d], X[tied, d] / unit
        assert ((before >= low - 1e-12) & (before <= high + 1e-12)).all()
        cells = np.unique(np.stack([low, high], axis=1).round(12), axis=0)
        assert (cells[1:, 0] >= cells[:-1, 1] - 1e-9).all()
        assert len(cells) == len(np.unique(rounded[tied, d]))
