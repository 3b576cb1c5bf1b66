"""Link prediction: predictions of single cells by a fitted model."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from partita.blocks.predicting import average_cells, log_score_cells
from partita.blocks.reading import cells_of, read_again
from partita.families import family_entry


class LinkPrediction:
    """The methods of :class:`RelationalBlocks` that predict cells, averaged over the kept draws."""

    handle_unknown: str
    family_name_: str
    levels_: list[tuple[Any, ...]]
    row_labels_: np.ndarray
    column_labels_: np.ndarray
    _schemas: tuple[Any, ...]
    _missing: tuple[np.ndarray, ...]
    _drawn: Any

    @property
    def _kind(self) -> str:
        return self._schemas[0].columns[0].kind

    def _data(self, cells: np.ndarray) -> Any:
        """A table of cells as the family reads it."""
        n_levels = np.array([schema.columns[0].n_levels for schema in self._schemas])
        names = [f"relation {m}" for m in range(len(self._schemas))]
        entry = family_entry(self.family_name_)
        return entry.block(cells, names, np.ones(len(cells)), n_levels=n_levels, exposure=None).data

    def missing_cells(self, relation=0):
        """Row and column of every cell of a relation that was missing in ``fit``, (cells, 2)."""
        return self._missing[self._relation(relation)].copy()

    def predict_cells(self, cells=None, *, relation=0):
        """Predict cells: the most probable level, or the mean in the user's units, averaged over draws.

        Parameters
        ----------
        cells : array (cells, 2) of row and column, default=None
            None for the cells that were missing in ``fit``, in the order of ``missing_cells``. The prediction of a cell
            that was observed in ``fit`` depends on its own value.
        relation : int, default=0
            Number of the relation.

        Returns
        -------
        ndarray (cells,)
        """
        values = self._cell_values(cells, relation)
        if self._kind in ("binary", "categorical"):
            levels = self.levels_[relation]
            return np.array(levels)[np.minimum(values.argmax(axis=1), len(levels) - 1)]
        return self._in_units(values, relation)[:, 0]

    def predict_cells_proba(self, cells=None, *, relation=0):
        """Probabilities of the levels ``levels_[relation]`` in cells; parameters as in ``predict_cells``.

        Returns
        -------
        ndarray (cells, levels)
        """
        check_is_fitted(self)
        if self._kind not in ("binary", "categorical"):
            raise ValueError(
                f"cells of the kind {self._kind} have no levels: use predict_cells for means, score_cells for densities"
            )
        return self._cell_values(cells, relation)[:, : max(len(self.levels_[relation]), 2)]

    def score_cells(self, values, cells=None, *, relation=0):
        """Log predictive density of values in cells, in the user's units.

        Parameters
        ----------
        values : array (cells,)
        cells, relation : as in ``predict_cells``

        Returns
        -------
        ndarray (cells,)
            0 where the value is missing, or is a level that was not seen in ``fit``.

        Examples
        --------
        >>> import numpy as np
        >>> from partita import RelationalBlocks
        >>> X = np.kron(np.eye(2), np.ones((5, 4)))
        >>> X[0, 0] = np.nan
        >>> model = RelationalBlocks(n_chains=1, n_draws=50, burn_in=50, random_state=0).fit(X)
        >>> likely, unlikely = model.score_cells([1, 0], [[0, 0], [0, 0]])
        >>> bool(likely > -0.2), bool(unlikely < -1.5)
        (True, True)
        """
        where = self._cells(cells, relation)
        schema = self._schemas[relation].columns[0]
        given = np.asarray(values)
        if given.shape != (len(where),):
            raise ValueError(
                f"values has the shape {given.shape}, but there are {len(where)} cells: pass one value per cell"
            )
        read = read_again(
            [given[:, None]] * len(self._schemas),
            [type(s)(s.columns[:1], False) for s in self._schemas],
            type(self).__name__,
            self.handle_unknown,
        )
        table = cells_of(read, family_entry(self.family_name_))
        hidden = np.arange(len(self._schemas)) != relation
        table[:, hidden] = np.nan if table.dtype.kind == "f" else -1
        out = log_score_cells(self._drawn, where, self._data(table))
        if self._kind == "real" and not family_entry(self.family_name_).raw:
            out = out - np.where(np.isnan(table[:, relation]), 0.0, np.log(schema.scale))
        return out

    def _relation(self, relation) -> int:
        check_is_fitted(self)
        if not isinstance(relation, Integral) or not 0 <= int(relation) < len(self._schemas):
            raise ValueError(f"relation is {relation!r}: pass a number from 0 to {len(self._schemas) - 1}")
        return int(relation)

    def _cells(self, cells, relation) -> np.ndarray:
        m = self._relation(relation)
        if cells is None:
            return self._missing[m]
        where = np.asarray(cells)
        if where.ndim != 2 or where.shape[1] != 2 or where.dtype.kind not in "iu":
            raise ValueError(
                f"cells is {where.dtype}{where.shape}: pass integers (cells, 2), the row and the column of each"
            )
        shape = (len(self.row_labels_), len(self.column_labels_))
        beyond = np.flatnonzero(((where < 0) | (where >= shape)).any(axis=1))
        if len(beyond):
            raise ValueError(
                f"cell {tuple(where[beyond[0]].tolist())} (entry {beyond[0]}) is not among the {shape[0]} rows and "
                f"{shape[1]} columns of the relation"
            )
        return where

    def _cell_values(self, cells, relation) -> np.ndarray:
        where = self._cells(cells, relation)
        return average_cells(self._drawn, where, relation, self._kind)

    def _in_units(self, values: np.ndarray, relation: int) -> np.ndarray:
        if self._kind != "real" or family_entry(self.family_name_).raw:
            return values
        schema = self._schemas[relation].columns[0]
        return values * schema.scale + schema.center
