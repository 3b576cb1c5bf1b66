"""A table whose rows and columns are both cut: pieces of a row lie with different workers, and stay there.

What a pass needs of a row as a whole is its log likelihood in each cluster, which is a sum over columns: each piece
sends its share (rows x clusters), the shares of a row chunk are added and normalised by one worker, and the
responsibilities go back to the pieces, which make their own statistics of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partita.execution.cluster import Cluster, ClusterShards, OnWorker, _wait

__all__ = ["GridShards"]


class GridShards(ClusterShards):
    """Row chunks of column pieces; ``cuts`` are the first columns of the pieces, then the number of all.

    What is said of :class:`Shards` holds, but ``map`` brings the pieces of a row chunk together on one worker: engines
    use ``map_pieces`` and ``through_rows`` instead.
    """

    def __init__(self, starts: np.ndarray, grid: Sequence[Sequence[Any]], cuts: Any, cluster: Cluster):
        from dask import delayed

        together = delayed(_together, pure=False)
        super().__init__(starts, [together(list(row)) for row in grid], cluster)
        self.grid, self.cuts = [list(row) for row in grid], np.asarray(cuts)

    def map_pieces(
        self, function: Callable[..., Any], common: Sequence[Any], own: Sequence[Any]
    ) -> list[list[Any]]:
        """``function(piece, common[j], own[i])`` of every piece, by row chunk; results come here."""
        futures = self.submit_pieces(function, common, own)
        return [[_wait(future, self._cluster) for future in row] for row in futures]

    def submit_pieces(
        self, function: Callable[..., Any], common: Sequence[Any], own: Sequence[Any]
    ) -> list[list[Any]]:
        """The same, as futures whose results stay where they are."""
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
        """The grid of what the function makes of each piece."""
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
        """Futures of ``join(shares of the pieces, about, own[i])`` of each row chunk."""
        shares = self.submit_pieces(share, common, own)
        client = self._cluster.client
        return [
            client.submit(OnWorker(join, about, own[i], False), row, pure=False)
            for i, row in enumerate(shares)
        ]

    def back_to_pieces(
        self, function: Callable[..., Any], common: Sequence[Any], joined: Sequence[Any], own: Sequence[Any]
    ) -> list[list[Any]]:
        """``function((piece, joined[i]), common[j], own[i])`` of every piece; results come here."""
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
        """``function`` of what lies with the workers; results come here."""
        client = self._cluster.client
        futures = [client.submit(OnWorker(_apply, function, None, False), one, pure=False) for one in joined]
        return [_wait(future, self._cluster) for future in futures]


class Both:
    """A task of a piece and of what its row chunk has in common."""

    __name__ = "partita-piece"

    def __init__(self, function: Callable[..., Any], common: Any, own: Any):
        self.function, self.common, self.own = function, common, own

    def __call__(self, piece: Any, joined: Any) -> Any:
        return self.function((piece, joined), self.common, self.own)


def _apply(item: Any, function: Callable[..., Any], _: Any) -> Any:
    return function(item)


def _together(pieces: Sequence[Any]) -> Any:
    """The pieces of a row chunk side by side; encoded ones are tuples of one array."""
    if isinstance(pieces[0], tuple):
        return (np.concatenate([piece[0] for piece in pieces], axis=1),)
    return np.concatenate(pieces, axis=1)
