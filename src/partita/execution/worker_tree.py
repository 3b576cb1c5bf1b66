"""Passes that Dask workers hand on to each other: a tree of workers, without a task of the scheduler.

The scheduler needs about a millisecond for each task, which is longer than a pass of a thousand workers may take. Here
the driver calls one worker, which calls the next ones, and so on; every worker passes over its own shards, adds the
sums of the workers below it, and returns the total to the worker above. A call that fails, because a worker is lost or
a shard has moved, fails the whole pass: the caller then submits it to the scheduler, which repairs what is lost.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

BRANCHES = (
    4  # workers that a worker calls: it makes these calls one after the other, and waits for each level
)


class WorkerNode(NamedTuple):
    """A worker, the keys of its shards in a group per thread, what belongs to these, and the workers that it calls."""

    address: str
    groups: tuple[tuple[str, ...], ...]
    own: tuple[tuple[Any, ...], ...]
    below: tuple[WorkerNode, ...]


def plant(
    groups: Mapping[str, Sequence[Sequence[int]]], keys: Sequence[str], own: Sequence[Any]
) -> WorkerNode:
    """The tree over all workers; ``groups`` has the numbers of the shards of each.

    Examples
    --------
    >>> root = plant({"a": [[0], [2]], "b": [[1]]}, ["x", "y", "z"], [10, 11, 12])
    >>> root.groups, root.own, root.below[0].address
    ((('x',), ('z',)), ((10,), (12,)), 'b')
    """
    workers = list(groups)

    def node(number: int) -> WorkerNode:
        held = groups[workers[number]]
        first = BRANCHES * number + 1
        return WorkerNode(
            workers[number],
            tuple(tuple(keys[i] for i in group) for group in held),
            tuple(tuple(own[i] for i in group) for group in held),
            tuple(node(child) for child in range(first, min(first + BRANCHES, len(workers)))),
        )

    return node(0)


def n_levels(n_workers: int) -> int:
    """Levels of a tree of so many workers.

    Examples
    --------
    >>> [n_levels(n) for n in (1, 2, 5, 6, 1000)]
    [1, 2, 2, 3, 6]
    """
    levels, reached, width = 0, 0, 1
    while reached < n_workers:
        levels, reached, width = levels + 1, reached + width, width * BRANCHES
    return levels


def run_tree(
    client: Any, root: WorkerNode, task: Callable[..., Any], combine: Callable[[Any, Any], Any]
) -> Any:
    """The combined results of ``task(shards, own)`` for all groups of all workers.

    Any error, of a call or of the task, is raised; which one depends on the worker that fails first.
    """
    addresses = _addresses(root)
    if client.run_on_scheduler(_n_lost, addresses):
        raise OSError("a worker is lost")  # a call to it would wait for its time limit
    found = client.run(_pass_here, pickle.dumps((task, combine)), root, workers=[root.address])
    return found[root.address]


def _addresses(node: WorkerNode) -> list[str]:
    return [node.address, *(address for child in node.below for address in _addresses(child))]


def _n_lost(addresses: Sequence[str], dask_scheduler: Any) -> int:
    return sum(address not in dask_scheduler.workers for address in addresses)


# ---- what runs on a worker -----------------------------------------------------------------------------------------


async def _pass_here(sent: bytes, node: WorkerNode, dask_worker: Any) -> Any:
    """Call the workers below, pass over the own shards in the threads of the worker, and add up."""
    loop, threads = asyncio.get_running_loop(), dask_worker.executors["default"]
    below = [loop.create_task(_call(dask_worker, sent, child)) for child in node.below]
    task, combine = pickle.loads(sent)
    here = [
        loop.run_in_executor(threads, task, [dask_worker.data[key] for key in group], own)
        for group, own in zip(node.groups, node.own, strict=True)
    ]
    try:
        results = await asyncio.gather(*here, *below)
    finally:
        for call in below:
            call.cancel()
    return await loop.run_in_executor(threads, _total, results, combine)


async def _call(worker: Any, sent: bytes, child: WorkerNode) -> Any:
    answer = await worker.rpc(child.address).run(
        function=pickle.dumps(_pass_here), args=pickle.dumps((sent, child))
    )
    if answer["status"] != "OK":
        raise RuntimeError(f"{child.address}: {answer.get('text', answer['status'])}")
    return answer["result"]


def _total(results: Sequence[Any], combine: Callable[[Any, Any], Any]) -> Any:
    total = results[0]
    for result in results[1:]:
        total = combine(total, result)
    return total
