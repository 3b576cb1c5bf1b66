"""Queries of fitted models of views as methods, in the user's units and names."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from partita.estimator import TableEstimator, as_generator
from partita.fitting.families import reassemble
from partita.fitting.out_of_core import reads_chunks
from partita.views import draw_queries
from partita.views.draws import Draw
from partita.views.information import mutual_information_matrix
from partita.views.new_rows import place_rows
from partita.views.parts import ColumnParts, parts_of_columns
from partita.views.predictive import log_states

MAX_SIMILARITY_ROWS = 20_000


class ViewQueries(TableEstimator):
    """The queries of a fitted model of views: they read the draws, the estimate and the schema of the table."""

    exposure: str | None
    handle_unknown: str
    random_state: Any
    draws_: tuple[Draw, ...]
    dependence_: np.ndarray
    feature_views_: np.ndarray
    view_labels_: np.ndarray
    _blocks: tuple[Any, ...]  # families and names of the modeled columns
    _estimate: Draw  # the views of ``view_labels_``, one factor per view

    # ---- columns -----------------------------------------------------------------------------------------------

    def _column(self, column: Any) -> int:
        """Number of a column given by name or number; the column must be modeled."""
        check_is_fitted(self)
        names = self.schema_.names
        if isinstance(column, Integral) and not isinstance(column, str):
            number = int(column)
            if not -len(names) <= number < len(names):
                raise ValueError(f"no column {number}: the table has {len(names)} columns")
            number %= len(names)
        else:
            number = names.index(self.schema_.column(column).name)
        if number not in self._modeled():
            raise ValueError(f"column {names[number]!r} is not modeled: it is ignored or an exposure")
        return number

    def _modeled(self) -> np.ndarray:
        """Numbers of the modeled columns, in increasing order."""
        return np.array(list(self._parts()), dtype=np.intp)

    def _parts(self) -> dict[int, ColumnParts]:
        """The parts of each modeled column."""
        return parts_of_columns(self.schema_, self._blocks)

    def dependence_probability(self, first: Any, second: Any) -> float:
        """Probability that two columns depend on each other, that is, share a view with at least two clusters.

        Parameters
        ----------
        first, second : str or int
            Columns, by name or number.

        Returns
        -------
        float
        """
        a, b = self._column(first), self._column(second)
        return 1.0 if a == b else float(self.dependence_[a, b])

    def mutual_information(self, columns: Any = None, n_points: int = 200, max_draws: int = 50) -> np.ndarray:
        """Mutual information of pairs of columns in nats, averaged over draws.

        It is exactly 0 for two columns that share no view in any draw, and never negative. Numeric columns are
        represented by points drawn from their predictive, so their values have a small Monte Carlo error.

        Parameters
        ----------
        columns : sequence of str or int, default=None
            Columns by name or number; None for all.
        n_points : int, default=200
            Number of points that represent a numeric column.
        max_draws : int, default=50
            Maximum number of draws to average over, evenly spaced.

        Returns
        -------
        ndarray (n_columns, n_columns)
            Symmetric; the diagonal is NaN.
        """
        check_is_fitted(self)
        numbers = self._modeled().tolist() if columns is None else [self._column(c) for c in columns]
        rng = np.random.default_rng(0)  # so that the same call returns the same values
        M = mutual_information_matrix(self._some_draws(max_draws), numbers, rng, n_points)
        if columns is not None:
            return M
        out = np.full((self.schema_.n_features,) * 2, 0.0)
        out[np.ix_(numbers, numbers)] = M
        np.fill_diagonal(out, np.nan)
        return out

    def relevance(self, column: Any) -> np.ndarray:
        """Probability that a column belongs to each view: its row of ``feature_views_``."""
        return self.feature_views_[self._column(column)]

    def explain(self, view: int, cluster: int | None = None) -> list[tuple[str, float]]:
        """Columns that explain a view, or one of its clusters, with their evidence; the strongest come first.

        The evidence is a log Bayes factor in nats per row: the clusters of the view (or this cluster and all others
        pooled) against a single cluster, with parameters integrated out. It refers to ``view_labels_``, not to the
        draws.

        Parameters
        ----------
        view : int
            Number of a view of the estimate.
        cluster : int, default=None
            Number of a cluster of the view.

        Returns
        -------
        list of (str, float)
            Name and evidence of each column.
        """
        factor = self._estimate_factor(view)
        K = len(factor.log_weights)
        if cluster is not None and not 0 <= cluster < K:
            raise ValueError(f"view {view} has no cluster {cluster}: it has {K}, numbered from 0")
        by_part = draw_queries.column_evidence(factor, cluster) / len(self._estimate.labels)
        columns = list(dict.fromkeys(factor.columns.tolist()))
        value = np.array([by_part[factor.columns == column].sum() for column in columns])
        order = np.argsort(-value, kind="stable")
        return [(self.schema_.names[columns[i]], float(value[i])) for i in order]

    def _estimate_factor(self, view: int):
        check_is_fitted(self)
        V = self.view_labels_.shape[1]
        if not 0 <= view < V:
            raise ValueError(f"no view {view}: there are {V}, numbered from 0")
        return self._estimate.factors[view]

    # ---- rows --------------------------------------------------------------------------------------------------

    def row_similarity(
        self, rows: Any = None, *, view: int | None = None, columns: Any = None, weighted=False
    ):
        """Probability that two rows share a cluster, averaged over views and draws.

        Parameters
        ----------
        rows : sequence of int, default=None
            Rows of the training table; None for all.
        view : int, default=None
            A view of the estimate: views of the draws count in proportion to the columns they share with it.
        columns : sequence of str or int, default=None
            Only views with one of these columns count.
        weighted : bool, default=False
            Whether a view counts in proportion to its number of columns; otherwise every view counts once.

        Returns
        -------
        ndarray (n_rows, n_rows)
        """
        check_is_fitted(self)
        if self._has_sample():
            raise AttributeError(
                "the model was fitted to a sample of the rows, so pairs of rows have no probabilities: fit fewer rows"
            )
        N = len(self._estimate.labels)
        rows = np.arange(N) if rows is None else np.asarray(rows, dtype=np.intp)
        if len(rows) > MAX_SIMILARITY_ROWS:
            raise ValueError(
                f"the similarities of {len(rows)} rows are too large a matrix: choose at most {MAX_SIMILARITY_ROWS} "
                "with rows="
            )
        chosen = None
        if view is not None:
            factor = self._estimate_factor(view)
            chosen, weighted = np.unique(factor.columns), True
        if columns is not None:
            chosen = np.array([self._column(c) for c in columns])
        return draw_queries.row_similarity(self.draws_, rows, chosen, weighted)

    def _has_sample(self) -> bool:
        """Whether the draws have labels for a sample of the rows."""
        return len(self._estimate.labels) != len(self.view_labels_)

    def _some_draws(self, most: int) -> tuple[Draw, ...]:
        T = len(self.draws_)
        if most >= T:
            return self.draws_
        return tuple(self.draws_[t] for t in np.linspace(0, T - 1, most).round().astype(int))

    def _encode(self, X: Any):
        """New rows as the data of the blocks, and as a table."""
        table = self._read_new(X, self.handle_unknown)
        families = [block.family for block in self._blocks]
        made = reassemble(table, self._blocks, families, self._exposure_column())
        return [block.data for block in made], table

    def _exposure_column(self) -> str | None:
        """Name of the column with the exposures of the counts, if there is one."""
        return self.exposure

    def _log_units(self, table: Any) -> np.ndarray:
        """What is added to the log density of each observed cell for densities in the user's units: [row, column]."""
        out = np.zeros((table.n_rows, self.schema_.n_features))
        for j, parts in self._parts().items():
            out[:, j] = parts.log_units(table.column(parts.column.name).values)
        return np.where(self._seen(table), out, 0.0)

    def _seen(self, table: Any) -> np.ndarray:
        """Whether each cell of a table is observed and modeled: [row, column]."""
        seen = np.zeros((table.n_rows, self.schema_.n_features), bool)
        modeled = set(self._modeled().tolist())
        for j, name in enumerate(self.schema_.names):
            if j in modeled:
                values = table.column(name).values
                seen[:, j] = ~np.isnan(values) if values.dtype.kind == "f" else values >= 0
        return seen

    @reads_chunks
    def score_samples(self, X: Any) -> np.ndarray:
        """Log density of each row in the user's units, averaged over draws; missing cells are left out.

        A cell with the lump of its column counts with its probability; other cells of such a column, with the
        probability that a cell is not the lump times their density.
        """
        data, table = self._encode(X)
        return draw_queries.log_density(self.draws_, data) + self._log_units(table).sum(axis=1)

    def log_density(self, X: Any, given: Any = None) -> np.ndarray:
        """Log density of each row of X; with ``given``, conditional on other cells of the same row.

        Parameters
        ----------
        X : array or data frame
            Rows; missing cells are left out.
        given : array or data frame, default=None
            Known cells of the same rows. Cells that are also observed in X are taken from X.

        Returns
        -------
        ndarray (n_rows,)
        """
        if given is None:
            return self.score_samples(X)
        data, table = self._encode(X)
        known, other = self._encode(given)
        if other.n_rows != table.n_rows:
            raise ValueError(
                f"given has {other.n_rows} rows and X has {table.n_rows}: pass the same rows in both"
            )
        seen = self._seen(table)
        for number, parts in self._parts().items():
            for place in parts.places:
                known = draw_queries.hide(known, *place, seen[:, number])
        both = [_merged(a, b) for a, b in zip(data, known, strict=True)]
        return draw_queries.log_density(self.draws_, both, known) + self._log_units(table).sum(axis=1)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log density of the rows, as in ``score_samples``."""
        return float(self.score_samples(X).mean())

    def surprisal(self, X: Any) -> np.ndarray:
        """``-log p(cell | the other cells of its row)`` of every cell, in nats; NaN where a cell is missing.

        For real columns this is a density in the user's units: values are comparable within a column only. A cell with
        the lump of its column, such as a zero that half of the rows have, has a probability in its place.
        """
        data, table = self._encode(X)
        out = draw_queries.cell_surprisal(self.draws_, data, self.schema_.n_features) - self._log_units(table)
        return np.where(self._seen(table), out, np.nan)

    def novelty(self, X: Any) -> np.ndarray:
        """Probability that a row belongs to a cluster not seen in ``fit``, averaged over columns and draws."""
        data, _ = self._encode(X)
        return draw_queries.novelty(self.draws_, data)

    @reads_chunks
    def predict(self, X: Any) -> np.ndarray:
        """Most probable cluster of each row in each view of the estimate: (n_rows, n_views).

        The clusters are those of ``view_labels_``. For training rows the result may differ from ``view_labels_``, which
        summarizes all draws.
        """
        check_is_fitted(self)
        data = place_rows(self._estimate, self._encode(X)[0]).data
        return np.column_stack([log_states(f, data).argmax(axis=1) for f in self._estimate.factors])

    def predict_column(self, X: Any, column: Any):
        """Predict one column from the other cells of each row; the values of the column in X are ignored.

        Returns
        -------
        dict
            ``mean`` and ``sd`` for a numeric column; for others ``levels``, ``probabilities`` (n_rows, n_levels) and
            ``value``, the most probable level.
        """
        number = self._column(column)
        data, _ = self._encode(X)
        parts = self._parts()[number]
        for place in parts.places:
            data = draw_queries.hide(data, *place)
        return self._predicted(number, parts, data)

    def _predicted(self, number: int, parts: ColumnParts, data: Any) -> dict[str, np.ndarray]:
        """Prediction of one column given the observed cells, in the user's units."""
        lump = np.nan if parts.lumps is None else parts.lump
        found = draw_queries.predict_cells(self.draws_, data, number, parts.moments, lump)
        if found.probabilities is None:
            assert found.mean is not None and found.sd is not None
            return {"mean": found.mean, "sd": found.sd}
        if parts.lumps is not None:
            mean, sd = parts.moments_beside()
            share = found.probabilities[:, 1]
            center = (1.0 - share) * lump + share * mean
            spread = share * sd**2 + share * (1.0 - share) * (mean - lump) ** 2
            return {"mean": center, "sd": np.sqrt(spread)}
        levels = np.array(parts.column.levels, dtype=object)
        P = found.probabilities[:, : len(levels)]
        return {"levels": levels, "probabilities": P, "value": levels[P.argmax(axis=1)]}

    def impute(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Fill the missing cells of X, with the uncertainty of each filled cell.

        Returns
        -------
        filled : ndarray (n_rows, n_columns)
            Observed cells unchanged; missing numbers replaced by their mean, missing levels by the most probable one.
        uncertainty : ndarray (n_rows, n_columns)
            0 for observed cells; the standard deviation of a filled number, the probability that a filled level is
            wrong. NaN in columns that are not modeled.
        """
        data, table = self._encode(X)
        seen = self._seen(table)
        filled = self._user_table(table)
        uncertainty = np.where(seen, 0.0, np.nan)
        for number, parts in self._parts().items():
            rows = np.flatnonzero(~seen[:, number])
            if not len(rows):
                continue
            predicted = self._predicted(number, parts, data)
            filled[rows, number] = predicted["value" if "value" in predicted else "mean"][rows]
            if "sd" in predicted:
                uncertainty[rows, number] = predicted["sd"][rows]
            else:
                uncertainty[rows, number] = 1.0 - predicted["probabilities"].max(axis=1)[rows]
        return filled, uncertainty

    def _user_table(self, table: Any) -> np.ndarray:
        """The observed cells in the user's units and labels."""
        columns = {}
        for j in self._modeled():
            name = self.schema_.names[j]
            values = table.column(name).values
            if self.schema_.columns[j].kind in ("binary", "categorical"):
                values = self.schema_.decode(name, values)
            columns[int(j)] = values
        return _stack(columns, table.n_rows, self.schema_)

    def simulate(self, n_samples: int = 1, given: Any = None, random_state: Any = None) -> np.ndarray:
        """Simulate new rows, or the missing cells of given rows.

        Parameters
        ----------
        n_samples : int, default=1
            Number of new rows; with ``given``, number of completions of each of its rows.
        given : array or data frame, default=None
            Rows with missing cells.
        random_state : None, int, RandomState, Generator or SeedSequence, default=None
            None for that of the estimator.

        Returns
        -------
        ndarray (n_samples, n_columns), or (n_samples, n_rows, n_columns) with ``given``
            In the user's units and labels; floats if every column is numeric, otherwise objects.
        """
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 0:
            raise ValueError(f"n_samples is {n_samples!r}: pass a number of rows, 0 or more")
        rng = as_generator(self.random_state if random_state is None else random_state)
        D = self.schema_.n_features
        if given is None:
            empty = np.full((1, D), None, dtype=object)
            drawn = draw_queries.simulate_rows(self.draws_, self._encode(empty)[0], int(n_samples), rng)
            return self._user_rows([cells[:, 0] for cells in drawn], rng)
        data, table = self._encode(given)
        drawn = draw_queries.simulate_rows(self.draws_, data, int(n_samples), rng)
        known, seen = self._user_table(table), self._seen(table)
        out = [self._user_rows([cells[t] for cells in drawn], rng) for t in range(int(n_samples))]
        for one in out:
            one[seen] = known[seen]
        return np.stack(out) if out else np.empty((0, *known.shape), known.dtype)

    def _user_rows(self, drawn: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:
        """Rows in the user's units and labels, from the cells of all blocks."""
        columns: dict[int, np.ndarray] = {}
        for number, parts in self._parts().items():
            column, values = parts.column, parts.values(drawn, rng)
            if column.kind in ("binary", "categorical"):
                codes = np.minimum(values.astype(int), len(column.levels) - 1)
                values = self.schema_.decode(column.name, codes)
            columns[number] = values
        return _stack(columns, len(drawn[0]), self.schema_)


def _stack(columns: dict[int, np.ndarray], n: int, schema: Any) -> np.ndarray:
    """Columns side by side: floats if all are numeric, otherwise objects; columns not given are missing."""
    columns = {j: _numbers(values) for j, values in columns.items()}
    numeric = all(values.dtype.kind in "fiu" for values in columns.values())
    out = np.full((n, schema.n_features), np.nan if numeric else None, dtype=float if numeric else object)
    for j, values in columns.items():
        out[:, j] = values
    return out


def _numbers(values: np.ndarray) -> np.ndarray:
    """Numeric levels as floats, missing ones as NaN; other levels unchanged."""
    if values.dtype != object:
        return values
    if all(v is None or (isinstance(v, (int, float)) and not isinstance(v, bool)) for v in values):
        return np.array([np.nan if v is None else float(v) for v in values])
    return values


def _missing(values: np.ndarray) -> np.ndarray:
    return np.isnan(values) if values.dtype.kind == "f" else values < 0


def _merged(first: Any, second: Any) -> Any:
    """Cells of the first table, or of the second where the first has none."""
    if hasattr(first, "exposure"):
        return first._replace(X=_merged(first.X, second.X))
    return np.where(_missing(first), second, first)
