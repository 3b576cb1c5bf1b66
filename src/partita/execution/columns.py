"""A table that is cut along rows and columns: each shard consists of pieces on different workers.

A pass needs the log likelihood of each row in each cluster, which is a sum over columns. Each piece sends the sum over
its own columns (rows x clusters), one worker adds up the sums of a shard and normalizes them, and the responsibilities
go back to the pieces, which compute the statistics of their columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partita.execution.cluster import Cluster, ClusterShards, OnWorker, _wait


class GridShards(ClusterShards):
    """Shards that consist of pieces; ``cuts`` holds the first column of each piece, then the number of columns.

    As in :class:`Shards`, except that ``map`` brings the pieces of a shard together on one worker. Engines use
    ``map_pieces`` and ``through_rows``, which leave the pieces where they are.
    """

    def __init__(self, starts: np.ndarray, grid: Sequence[Sequence[Any]], cuts: Any, cluster: Cluster):
        from dask import delayed

        together = delayed(_together, pure=False)
        super().__init__(starts, [together(list(row)) for row in grid], cluster)
        self.grid, self.cuts = [list(row) for row in grid], np.asarray(cuts)

    def map_pieces(
        self, function: Callable[..., Any], common: Sequence[Any], own: Sequence[Any]
    ) -> list[list[Any]]:
        """Return ``function(piece, common[j], own[i])`` of piece j of shard i, as a list per shard."""
        futures = self.submit_pieces(function, common, own)
        return [[_wait(future, self._cluster) for future in row] for row in futures]

    def submit_pieces(
        self, function: Callable[..., Any], common: Sequence[Any], own: Sequence[Any]
    ) -> list[list[Any]]:
        """Return the same as futures, whose results stay on the workers."""
        return [
            [self._one(function, piece, common[j], own[i]) for j, piece in enumerate(row)]
            for i, row in enumerate(self.grid)
        ]

    def _one(self, function: Callable[..., Any], piece: Any, common: Any, own: Any) -> Any:
        from dask import delayed

        task = OnWorker(function, common, own, False)
        if hasattr(piece, "__dask_graph__"):
            return self._cluster.client.compute(delayed(task, pure=False, traverse=False)(piece))
        return self._cluster.client.submit(task, piece, pure=False)

    def derive_pieces(self, function: Callable[..., Any], common: Sequence[Any]) -> GridShards:
        """Apply a function to every piece; the results are the pieces of new shards."""
        made = self.submit_pieces(function, common, [None] * len(self.grid))
        return GridShards(self.starts, made, self.cuts, self._cluster)

    def through_rows(
        self,
        share: Callable[..., Any],
        common: Sequence[Any],
        join: Callable[..., Any],
        about: Any,
        own: Sequence[Any],
    ) -> list[Any]:
        """Return futures of ``join(shares of the pieces, about, own[i])``, one per shard."""
        shares = self.submit_pieces(share, common, own)
        client = self._cluster.client
        return [
            client.submit(OnWorker(join, about, own[i], False), row, pure=False)
            for i, row in enumerate(shares)
        ]

    def back_to_pieces(
        self, function: Callable[..., Any], common: Sequence[Any], joined: Sequence[Any], own: Sequence[Any]
    ) -> list[list[Any]]:
        """Return ``function((piece, joined[i]), common[j], own[i])`` of piece j of shard i, as a list per shard."""
        client = self._cluster.client
        futures = [
            [
                client.submit(Both(function, common[j], own[i]), piece, joined[i], pure=False)
                for j, piece in enumerate(row)
            ]
            for i, row in enumerate(self.grid)
        ]
        return [[_wait(future, self._cluster) for future in row] for row in futures]

    def ask(self, function: Callable[..., Any], joined: Sequence[Any]) -> list[Any]:
        """Return ``function`` of each result that lies on a worker."""
        client = self._cluster.client
        futures = [client.submit(OnWorker(_apply, function, None, False), one, pure=False) for one in joined]
        return [_wait(future, self._cluster) for future in futures]


class Both:
    """A task for one piece and the joined result of its shard."""

    __name__ = "partita-piece"

    def __init__(self, function: Callable[..., Any], common: Any, own: Any):
        self.function, self.common, self.own = function, common, own

    def __call__(self, piece: Any, joined: Any) -> Any:
        return self.function((piece, joined), self.common, self.own)


def _apply(item: Any, function: Callable[..., Any], _: Any) -> Any:
    return function(item)


def _together(pieces: Sequence[Any]) -> Any:
    """Put the pieces of a shard side by side; encoded pieces are tuples of one array."""
    if isinstance(pieces[0], tuple):
        return (np.concatenate([piece[0] for piece in pieces], axis=1),)
    return np.concatenate(pieces, axis=1)
