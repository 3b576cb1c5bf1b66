"""Where the data of blocks are, and how a pass runs there: in memory, in shards, in a grid, on a device.

Engines call the functions of :mod:`partita.engines.passes.rows`, which call :func:`residence_of` and do not depend on
where the rows are. A further place needs a class with the methods of :class:`Residence` and a line in
:func:`residence_of`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from partita.engines.passes.columns import InGrid
from partita.engines.passes.device import OnDevice
from partita.engines.passes.device_rows import DEVICE_DATA
from partita.engines.passes.exact_sums import ExactSums
from partita.engines.passes.memory import Memory
from partita.engines.passes.shards import InShards
from partita.engines.passes.values import Assignment, Parameters, Partition, Statistics
from partita.execution import Part, ShardData
from partita.execution.columns import GridShards


class Scorer(Protocol):
    """Scores all rows of some blocks in every cluster."""

    def assign(self, n_rows: int, executor: Any = None, uncertain: bool = False) -> Assignment:
        """Most probable cluster of every row, with ``uncertain`` also the uncertain rows."""

    def labels(self, n_rows: int, executor: Any = None) -> Any:
        """Most probable cluster of every row, on the device where the rows are on one."""

    def partition(self, weights: np.ndarray, n_clusters: int, executor: Any = None) -> Partition:
        """Labels, confidence and uncertain rows, fetched later where the rows are elsewhere, and sums over the rows."""

    def label(self, n_rows: int, n_clusters: int, executor: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Responsibilities [row, cluster] and log likelihood of every row."""


class Residence(Protocol):
    """A place where the data of blocks are."""

    @property
    def eps(self) -> float:
        """Relative precision of a pass."""

    def collect(
        self,
        blocks: Sequence[Any],
        weights: np.ndarray,
        parameters: Parameters,
        executor: Any,
        part: Part | None = None,
    ) -> Statistics:
        """Expected statistics of all objects, or of those of a part, under the parameters: the E step."""

    def count(
        self,
        blocks: Sequence[Any],
        weights: np.ndarray,
        z: np.ndarray,
        K: int,
        thetas: Sequence[np.ndarray] | None,
    ) -> Statistics:
        """Statistics of given labels; -1 counts for no cluster."""

    def plug_in(self, blocks: Sequence[Any], parameters: Parameters) -> Scorer:
        """Scores under given parameters."""

    def predictive(self, blocks: Sequence[Any], S: Sequence[np.ndarray], log_weights: np.ndarray) -> Scorer:
        """Scores under the data of every cluster, with the parameters integrated out."""

    def take(self, blocks: Sequence[Any], rows: np.ndarray) -> tuple[Sequence[Any], np.ndarray]:
        """Blocks in memory that hold these rows (in ascending order), and the positions of the rows in them."""

    def pack(self, blocks: Sequence[Any], n_rows: int) -> tuple[Any, ...]:
        """The blocks, with a packed form where passes are faster over it."""

    def partly_seen(self, blocks: Sequence[Any]) -> list[bool]:
        """Whether a block has vectors of which only some coordinates are observed."""

    def map_replicates(
        self,
        function: Any,
        common: Any,
        blocks: Sequence[Any],
        first: np.ndarray,
        z: np.ndarray,
        executor: Any,
        marks: np.ndarray | None,
    ) -> ExactSums:
        """Exact sums of a function of rows and their replicates; see :mod:`partita.engines.passes.replicates`."""

    def sum_observed(self, blocks: Sequence[Any], values: Sequence[np.ndarray | None]) -> np.ndarray:
        """For each row, the sum of ``values[block][column]`` over its observed cells of real columns.

        None leaves a block out; at least one block is not left out.
        """

    def total_observed(
        self, blocks: Sequence[Any], values: Sequence[np.ndarray | None], weights: np.ndarray
    ) -> float:
        """The weighted sum of :meth:`sum_observed` over the rows."""


def residence_of(blocks: Sequence[Any]) -> Residence:
    """Where the data of these blocks are."""
    data = blocks[0].data if len(blocks) else None
    if isinstance(data, ShardData):
        return InGrid(data.shards) if isinstance(data.shards, GridShards) else InShards(data.shards)
    if isinstance(data, DEVICE_DATA):
        return OnDevice()
    return Memory()
