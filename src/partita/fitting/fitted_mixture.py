"""A fitted mixture as a value: what scores, assigns, samples and describes rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partita.engines.passes.rows import (
    Assignment,
    Parameters,
    Partition,
    Statistics,
    assign_rows,
    label_rows,
    n_stats,
    partition_of,
    partition_rows,
    plug_in,
    predictive,
)
from partita.execution.weights import weighted_sum
from partita.families import Block, Lumps, Values, entry_of
from partita.families.contract import n_parameters, widened
from partita.fitting.contract import EngineResult
from partita.fitting.families import reassemble
from partita.fitting.outliers import OutlierModel, assign_outliers, log_density, with_background
from partita.fitting.predictive import PredictiveDraw, average_log_density
from partita.fitting.profiles import profile_columns, sample_columns, sample_table
from partita.fitting.units import log_jacobian, total_log_jacobian
from partita.table import Schema, Table


class FittedMixture(NamedTuple):
    """Families, statistics and weights of the clusters.

    ``blocks`` arguments of the methods are blocks with data, as :meth:`with_data` returns them.
    """

    schema: Schema
    exposure: str | None  # name of the exposure column
    blocks: tuple[Block, ...]  # families and columns, without data
    statistics: Statistics
    parameters: Parameters | None  # responsibilities are computed from them; None: from the predictive
    log_weights: np.ndarray
    prior: Any
    outliers: OutlierModel | None
    at_parameters: bool  # densities are those at ``parameters``; otherwise the parameters are integrated out
    draws: tuple[PredictiveDraw, ...] = ()  # that densities are averaged over, if any

    @property
    def n_components(self) -> int:
        """Number of clusters, those without rows counted."""
        return len(self.log_weights)

    @property
    def n_parameters(self) -> int:
        """Number of free parameters, the shares of the clusters counted."""
        K = self.n_components
        return K - 1 + K * sum(n_parameters(block.family) for block in self.blocks)

    @property
    def weights(self) -> np.ndarray:
        """Share of each cluster."""
        return np.exp(self.log_weights)

    def with_data(self, table: Table) -> tuple[Block, ...]:
        """The blocks with the rows of a table."""
        return reassemble(table, self.blocks, [block.family for block in self.blocks], self.exposure)

    # ---- rows --------------------------------------------------------------------------------------------------

    def assign(
        self, blocks: Sequence[Block], n_rows: int, executor: Any = None, *, uncertain: bool = False
    ) -> Assignment:
        """Most probable cluster of each row, or -1 where an outlier is more probable.

        With ``uncertain`` also the rows that more than one cluster may contain.
        """
        clusters = assign_rows(self._scorer(blocks), n_rows, executor, uncertain=uncertain)
        if self.outliers is None:
            return clusters
        return assign_outliers(self.outliers, clusters, log_density(self.outliers.laws, blocks))

    def partition(self, blocks: Sequence[Block], weights: np.ndarray, executor: Any = None) -> Partition:
        """Most probable cluster of each row or -1, the uncertain rows, and sums over the rows with their weights."""
        if self.outliers is None:
            return partition_rows(self._scorer(blocks), weights, self.n_components, executor)
        assigned = self.assign(blocks, len(weights), executor, uncertain=True)
        return partition_of(assigned, weights, self.n_components)

    def probabilities(self, blocks: Sequence[Block], n_rows: int, executor: Any = None) -> np.ndarray:
        """Probability of each cluster for each row; what is missing to 1 is the probability of an outlier."""
        proba, inside = label_rows(self._scorer(blocks), n_rows, self.n_components, executor)
        if self.outliers is None:
            return proba
        outside = log_density(self.outliers.laws, blocks)
        return proba * (1.0 - with_background(self.outliers, inside, outside)[1])[:, None]

    def outlier_probabilities(self, blocks: Sequence[Block], n_rows: int, executor: Any = None) -> np.ndarray:
        """Probability of each row of being an outlier."""
        assert self.outliers is not None
        inside = assign_rows(self._scorer(blocks), n_rows, executor).log_likelihood
        return with_background(self.outliers, inside, log_density(self.outliers.laws, blocks))[1]

    def log_densities(
        self,
        blocks: Sequence[Block],
        n_rows: int,
        executor: Any = None,
    ) -> np.ndarray:
        """Log density of each row in the user's units, averaged over the draws of chains."""
        outside = None if self.outliers is None else log_density(self.outliers.laws, blocks)
        if self.draws:
            values = average_log_density(self.draws, blocks, n_rows, executor, outside)
        else:
            values = assign_rows(self._scorer(blocks), n_rows, executor).log_likelihood
        return values + log_jacobian(blocks, self.schema)

    def log_likelihood(
        self, blocks: Sequence[Block], weights: np.ndarray, partition: Partition, executor: Any = None
    ) -> float:
        """Log density of all rows in the user's units.

        ``partition`` is what :meth:`partition` returned for these rows; it holds the sum already unless there are draws
        or outliers.
        """
        if self.draws or self.outliers is not None:
            return weighted_sum(weights, self.log_densities(blocks, len(weights), executor))
        return partition.log_likelihood + total_log_jacobian(blocks, self.schema, weights)

    def _scorer(self, blocks: Sequence[Block]) -> Any:
        """What responsibilities are computed from."""
        return self._predictive(blocks) if self.parameters is None else plug_in(blocks, self.parameters)

    def _predictive(self, blocks: Sequence[Block]) -> Any:
        return predictive(blocks, self.statistics.S, self.log_weights)

    def has_observed_cells(self, blocks: Sequence[Block], n_rows: int, executor: Any = None) -> np.ndarray:
        """Whether any modeled cell of each row is observed, wherever the rows are (per-column families)."""
        marks = tuple(np.full((n_stats(block.family), 1), -1.0) for block in blocks)
        at = Parameters(np.zeros(1), marks)  # an observed cell changes the log density
        return assign_rows(plug_in(blocks, at), n_rows, executor).log_likelihood != 0

    def observed_cells(self, table: Table) -> np.ndarray:
        """How many cells of each row are modeled and observed; a count vector has as many as it counts."""
        if table.sparse is not None:
            return np.asarray(table.sparse.sum(axis=1)).ravel()
        cells = np.zeros(table.n_rows)
        parted = {name for block in self.blocks if isinstance(block.coding, Lumps) for name in block.columns}
        for block in self.blocks:
            for name in block.columns:
                if isinstance(block.coding, Values) and name in parted:
                    continue  # the values beside a lump are cells that its block has counted
                values = table.column(name).values
                if entry_of(block.family).name == "multinomial":
                    cells += np.nan_to_num(values)
                else:
                    cells += ~np.isnan(values) if values.dtype.kind == "f" else values >= 0
        return cells

    # ---- clusters ----------------------------------------------------------------------------------------------

    def take(self, order: np.ndarray) -> FittedMixture:
        """These clusters only, in this order."""
        statistics = self.statistics._replace(
            n=self.statistics.n[order],
            S=tuple(
                np.ascontiguousarray(widened(block.family, S[:, order])[0])
                for block, S in zip(self.blocks, self.statistics.S, strict=True)
            ),
        )
        log_weights = self.log_weights[order]
        parameters = self.parameters
        if parameters is not None:
            thetas = tuple(np.ascontiguousarray(theta[:, order]) for theta in parameters.thetas)
            parameters = Parameters(parameters.log_weights[order], thetas)
        return self._replace(
            statistics=statistics,
            log_weights=log_weights - np.logaddexp.reduce(log_weights),
            parameters=parameters,
        )

    def profiles(self) -> dict[str, dict[str, np.ndarray]]:
        """For each column, what each cluster looks like, in the user's units and labels."""
        return profile_columns(self.blocks, self.statistics, self.schema)

    def sample(self, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """New rows of the clusters ``z``, columns in the order of the training table."""
        return sample_table(self.blocks, self.statistics, self._thetas(), z, self.schema, rng)

    def sample_columns(self, z: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """New rows of the clusters ``z`` by column: numbers in the user's units, levels as codes."""
        return sample_columns(self.blocks, self.statistics, self._thetas(), z, self.schema, rng)

    def _thetas(self) -> tuple[np.ndarray, ...] | None:
        """Parameters of new rows; None: they are drawn from their posterior.

        Expected natural parameters are not parameters, so variational fits draw theirs.
        """
        if not self.at_parameters:
            return None
        assert self.parameters is not None
        return self.parameters.thetas


def fitted_mixture(
    result: EngineResult,
    blocks: Sequence[Block],
    schema: Schema,
    *,
    exposure: str | None = None,
    at_parameters: bool = False,
) -> FittedMixture:
    """The result of an engine as a value, with all of its clusters; :meth:`~FittedMixture.take` chooses among them.

    VB passes over the training rows with expected parameters. Their responsibilities are not probabilities of clusters
    (those of a row without any observed cell are not the shares of the clusters), so that rows of a fitted mixture are
    scored with the parameters integrated out.
    """
    return FittedMixture(
        schema=schema,
        exposure=exposure,
        blocks=tuple(
            Block(family, None, block.columns, block.signal, coding=block.coding)
            for family, block in zip(result.families, blocks, strict=True)
        ),
        statistics=result.statistics,
        parameters=result.parameters if at_parameters else None,
        log_weights=result.log_weights,
        prior=result.prior,
        outliers=result.outliers,
        at_parameters=at_parameters,
        draws=result.draws,
    )
