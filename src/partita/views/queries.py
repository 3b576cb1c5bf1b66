"""The questions as methods: what every fitted model of views can be asked, in the user's units and names."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from partita.estimator import RunningMixin, TableEstimator, as_generator
from partita.families import entry_of
from partita.fitting.families import reassemble
from partita.views import questions
from partita.views.base import Draw, columns_of
from partita.views.information import mutual_information_matrix
from partita.views.laws import log_states

__all__ = ["ViewsEstimator"]

MOST_PAIRS = 20_000  # rows whose similarities are a matrix that fits into memory


class ViewsEstimator(RunningMixin, TableEstimator):
    """A model of views: a subclass fits ``draws_``, ``_blocks``, ``schema_`` and the summary of the draws."""

    _counted = "views"
    draws_: tuple[Draw, ...]
    _blocks: tuple[Any, ...]
    feature_views_: np.ndarray
    view_labels_: np.ndarray

    # ---- columns -----------------------------------------------------------------------------------------------

    def _column(self, column: Any) -> int:
        """Number of a column given by name or number; it must be one that the model reads."""
        check_is_fitted(self)
        names = self.schema_.names
        if isinstance(column, Integral) and not isinstance(column, str):
            number = int(column)
            if not -len(names) <= number < len(names):
                raise ValueError(f"no column {number}: the table has {len(names)} columns")
            number %= len(names)
        else:
            number = names.index(self.schema_.column(column).name)
        if number not in self._modelled():
            raise ValueError(f"column {names[number]!r} is not modelled (it is ignored, or an exposure)")
        return number

    def _modelled(self) -> np.ndarray:
        return np.sort(np.concatenate(columns_of(self.schema_, self._blocks)))

    def dependence_probability(self, first: Any, second: Any) -> float:
        """Probability that two columns depend on each other: that they share a view with at least two clusters.

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

        Exactly 0 for two columns that share no view in any draw, never negative. Numbers are replaced by points drawn
        from their predictive, so values for them carry a small Monte Carlo error.

        Parameters
        ----------
        columns : sequence of str or int, optional
            Which columns; all by default.
        n_points : int, default 200
            Points that stand for a column of numbers.
        max_draws : int, default 50
            Draws that are looked at, evenly spaced.

        Returns
        -------
        ndarray (n_columns, n_columns)
            Symmetric; the diagonal is NaN.
        """
        check_is_fitted(self)
        numbers = self._modelled().tolist() if columns is None else [self._column(c) for c in columns]
        rng = np.random.default_rng(0)  # the same question has the same answer
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
        """Which columns explain a view, or one of its clusters: names and evidence, the strongest first.

        The evidence is in nats a row: how much better the column is described with the clusters of the view (or with
        this cluster told from all others) than without, parameters integrated out. Draws do not matter here: it is
        about the labels in ``view_labels_``.

        Parameters
        ----------
        view : int
        cluster : int, optional

        Returns
        -------
        list of (str, float)
        """
        factor = self._estimate_factor(view)
        K = len(factor.log_weights)
        if cluster is not None and not 0 <= cluster < K:
            raise ValueError(f"view {view} has no cluster {cluster}: it has {K}, numbered from 0")
        value = questions.column_evidence(factor, cluster) / len(self.view_labels_)
        order = np.argsort(-value, kind="stable")
        return [(self.schema_.names[factor.columns[i]], float(value[i])) for i in order]

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
        """Probability that two rows share a cluster, over the views and over draws.

        Parameters
        ----------
        rows : sequence of int, optional
            Rows of the training table; all by default.
        view : int, optional
            One view of the estimate: only views of the draws that hold its columns count.
        columns : sequence of str or int, optional
            Only views that hold one of these columns count: similar with respect to them.
        weighted : bool, default False
            Whether a view counts as often as it holds columns; else every view counts once.

        Returns
        -------
        ndarray (n_rows, n_rows)
        """
        check_is_fitted(self)
        N = len(self.view_labels_)
        rows = np.arange(N) if rows is None else np.asarray(rows, dtype=np.intp)
        if len(rows) > MOST_PAIRS:
            raise ValueError(f"similarities of {len(rows)} rows would not fit into memory: pass rows=")
        chosen = None
        if view is not None:
            factor = self._estimate_factor(view)
            chosen, weighted = factor.columns, True
        if columns is not None:
            chosen = np.array([self._column(c) for c in columns])
        return questions.row_similarity(self.draws_, rows, chosen, weighted)

    def _some_draws(self, most: int) -> tuple[Draw, ...]:
        T = len(self.draws_)
        if most >= T:
            return self.draws_
        return tuple(self.draws_[t] for t in np.linspace(0, T - 1, most).round().astype(int))

    def _encode(self, X: Any):
        """New rows as the blocks see them, and the table."""
        table = self._read_new(X, self.handle_unknown)
        families = [block.family for block in self._blocks]
        made = reassemble(table, self._blocks, families, self._exposure_column())
        return [block.data for block in made], table

    def _exposure_column(self) -> str | None:
        """The column that holds the exposure of counts."""
        return self.exposure

    def _log_scales(self) -> np.ndarray:
        """Log scale of each column where the model reads it standardised, else 0."""
        out = np.zeros(self.schema_.n_features)
        for block, numbers in zip(self._blocks, columns_of(self.schema_, self._blocks), strict=True):
            entry = entry_of(block.family)
            if entry.kind == "real" and not entry.raw:
                out[numbers] = [np.log(self.schema_.columns[j].scale) for j in numbers]
        return out

    def _seen(self, table: Any) -> np.ndarray:
        """Which cells of a table are seen and modelled: [row, column]."""
        seen = np.zeros((table.n_rows, self.schema_.n_features), bool)
        modelled = set(self._modelled().tolist())
        for j, name in enumerate(self.schema_.names):
            if j in modelled:
                values = table.column(name).values
                seen[:, j] = ~np.isnan(values) if values.dtype.kind == "f" else values >= 0
        return seen

    def score_samples(self, X: Any) -> np.ndarray:
        """Log density of each row in the user's units, averaged over draws; missing cells do not count."""
        data, table = self._encode(X)
        return questions.log_density(self.draws_, data) - self._seen(table) @ self._log_scales()

    def log_density(self, X: Any, given: Any = None) -> np.ndarray:
        """Log density of each row of X; with ``given`` that of its cells given other cells of the same row.

        Parameters
        ----------
        X : array or data frame
            Rows; missing cells do not count.
        given : array or data frame, optional
            The same number of rows: cells that are known. Cells that X has too are taken from X.

        Returns
        -------
        ndarray (n_rows,)
        """
        if given is None:
            return self.score_samples(X)
        data, table = self._encode(X)
        known, other = self._encode(given)
        if other.n_rows != table.n_rows:
            raise ValueError(f"given has {other.n_rows} rows and X {table.n_rows}: give one for each")
        mine = self._seen(table)
        both = [_merged(a, b) for a, b in zip(data, known, strict=True)]
        hidden = [_without(b, a) for a, b in zip(data, known, strict=True)]
        return questions.log_density(self.draws_, both, hidden) - mine @ self._log_scales()

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log density of the rows."""
        return float(self.score_samples(X).mean())

    def surprisal(self, X: Any) -> np.ndarray:
        """``-log p(cell | the other cells of its row)`` of every cell, in nats; NaN where a cell is missing.

        Of real columns a log density in the user's units: compare the cells of a column, not those of two.
        """
        data, table = self._encode(X)
        out = questions.cell_surprisal(self.draws_, data, self.schema_.n_features) + self._log_scales()
        return np.where(self._seen(table), out, np.nan)

    def novelty(self, X: Any) -> np.ndarray:
        """Probability that a row belongs to no cluster that was seen in ``fit``, averaged over columns and draws."""
        data, _ = self._encode(X)
        return questions.novelty(self.draws_, data)

    def predict(self, X: Any) -> np.ndarray:
        """Most probable cluster of each row in each view of the estimate: (n_rows, n_views).

        Asks which cluster of ``view_labels_`` predicts the row best; on training rows it may differ from
        ``view_labels_``, which sums up all draws.
        """
        data, _ = self._encode(X)
        return np.column_stack([log_states(f, data).argmax(axis=1) for f in self._estimate.factors])

    def predict_column(self, X: Any, column: Any):
        """One column given the other cells of each row; what X says of the column itself is not looked at.

        Returns
        -------
        dict
            ``mean`` and ``sd`` of numbers; ``levels``, ``probabilities`` (rows x levels) and ``value`` of codes.
        """
        number = self._column(column)
        data, _ = self._encode(X)
        block, position = self._address(number)
        found = questions.predict_cells(self.draws_, questions.hide(data, block, position), number)
        return self._told(number, found)

    def _address(self, number: int) -> tuple[int, int]:
        for b, numbers in enumerate(columns_of(self.schema_, self._blocks)):
            if number in numbers:
                return b, int(np.flatnonzero(numbers == number)[0])
        raise ValueError(f"column {number} is not modelled")

    def _told(self, number: int, found: questions.Prediction) -> dict[str, np.ndarray]:
        column = self.schema_.columns[number]
        if found.probabilities is not None:
            levels = np.array(column.levels, dtype=object)
            P = found.probabilities[:, : len(levels)]
            return {"levels": levels, "probabilities": P, "value": levels[P.argmax(axis=1)]}
        scale = np.exp(self._log_scales()[number])
        center = column.center if scale != 1.0 or self._is_scaled(number) else 0.0
        return {"mean": center + scale * found.mean, "sd": scale * found.sd}

    def _is_scaled(self, number: int) -> bool:
        entry = entry_of(self._blocks[self._address(number)[0]].family)
        return entry.kind == "real" and not entry.raw

    def impute(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Fill the missing cells of X, and say how unsure each one is.

        Returns
        -------
        filled : ndarray (n_rows, n_columns)
            Observed cells as they are; missing numbers by their mean, missing codes by the most probable level.
        uncertainty : ndarray (n_rows, n_columns)
            0 where a cell is observed; the standard deviation of a filled number, the probability that a filled level
            is wrong. NaN in columns that the model does not read.
        """
        data, table = self._encode(X)
        seen = self._seen(table)
        filled = self._user_table(table)
        unsure = np.where(seen, 0.0, np.nan)
        for number in self._modelled():
            rows = np.flatnonzero(~seen[:, number])
            if not len(rows):
                continue
            told = self._told(number, questions.predict_cells(self.draws_, data, int(number)))
            filled[rows, number] = told["value" if "value" in told else "mean"][rows]
            if "sd" in told:
                unsure[rows, number] = told["sd"][rows]
            else:
                unsure[rows, number] = 1.0 - told["probabilities"].max(axis=1)[rows]
        return filled, unsure

    def _user_table(self, table: Any) -> np.ndarray:
        """The observed cells in the user's units and labels."""
        columns = {}
        for j in self._modelled():
            name = self.schema_.names[j]
            values = table.column(name).values
            if self.schema_.columns[j].kind in ("binary", "categorical"):
                values = self.schema_.decode(name, values)
            columns[int(j)] = values
        return _stack(columns, table.n_rows, self.schema_)

    def simulate(self, n_samples: int = 1, given: Any = None, random_state: Any = None) -> np.ndarray:
        """Draw new rows, or the missing cells of rows that are given in part.

        Parameters
        ----------
        n_samples : int, default 1
            New rows; with ``given``, completions of each of its rows.
        given : array or data frame, optional
            Rows with missing cells.
        random_state : None, int, RandomState, Generator or SeedSequence
            By default that of the estimator.

        Returns
        -------
        ndarray (n_samples, n_columns), or (n_samples, n_rows, n_columns) with ``given``
            In the user's units and labels; floats if every column is a number, else objects.
        """
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 0:
            raise ValueError(f"n_samples is {n_samples!r}: give a number of rows, 0 or more")
        rng = as_generator(self.random_state if random_state is None else random_state)
        D = self.schema_.n_features
        if given is None:
            empty = np.full((1, D), None, dtype=object)
            drawn = questions.simulate_rows(self.draws_, self._encode(empty)[0], D, int(n_samples), rng)
            return self._user_rows(drawn[:, 0])
        data, table = self._encode(given)
        drawn = questions.simulate_rows(self.draws_, data, D, int(n_samples), rng)
        known, seen = self._user_table(table), self._seen(table)
        out = [self._user_rows(one) for one in drawn]
        for one in out:
            one[seen] = known[seen]
        return np.stack(out) if out else np.empty((0, *known.shape), known.dtype)

    def _user_rows(self, drawn: np.ndarray) -> np.ndarray:
        columns: dict[int, np.ndarray] = {}
        for j in self._modelled():
            column, values = self.schema_.columns[j], drawn[:, j]
            if column.kind in ("binary", "categorical"):
                codes = np.minimum(values.astype(int), len(column.levels) - 1)
                columns[int(j)] = self.schema_.decode(column.name, codes)
            elif self._is_scaled(int(j)):
                columns[int(j)] = column.center + column.scale * values
            else:
                columns[int(j)] = values
        return _stack(columns, len(drawn), self.schema_)


def _stack(columns: dict[int, np.ndarray], n: int, schema: Any) -> np.ndarray:
    """Columns side by side: floats if all are numbers, else objects; what is not there is missing."""
    columns = {j: _numbers(values) for j, values in columns.items()}
    numeric = all(values.dtype.kind in "fiu" for values in columns.values())
    out = np.full((n, schema.n_features), np.nan if numeric else None, dtype=float if numeric else object)
    for j, values in columns.items():
        out[:, j] = values
    return out


def _numbers(values: np.ndarray) -> np.ndarray:
    """Levels that are numbers as numbers, missing ones as NaN."""
    if values.dtype != object:
        return values
    if all(v is None or (isinstance(v, (int, float)) and not isinstance(v, bool)) for v in values):
        return np.array([np.nan if v is None else float(v) for v in values])
    return values


def _missing(values: np.ndarray) -> np.ndarray:
    return np.isnan(values) if values.dtype.kind == "f" else values < 0


def _merged(mine: Any, theirs: Any) -> Any:
    """Cells of the first, or of the second where the first has none."""
    if hasattr(mine, "exposure"):
        return mine._replace(X=_merged(mine.X, theirs.X))
    return np.where(_missing(mine), theirs, mine)


def _without(theirs: Any, mine: Any) -> Any:
    """Cells of the first that the second has not."""
    if hasattr(theirs, "exposure"):
        return theirs._replace(X=_without(theirs.X, mine.X))
    return np.where(_missing(mine), theirs, np.nan if theirs.dtype.kind == "f" else -1).astype(theirs.dtype)
