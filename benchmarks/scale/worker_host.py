"""Dask workers of one thread, each in a process of its own: ``python -m benchmarks.scale.worker_host ADDRESS N``.

The processes are copies of this one, made after everything was imported, so that many of them start at once.
"""

import asyncio
import importlib
import os
import signal
import sys


async def host(address: str) -> None:
    from distributed import Worker

    async with Worker(address, nthreads=1, memory_limit=0, dashboard=False) as worker:
        await worker.finished()


# what a worker does to watch itself, which many workers on few cores have no time for
UNWATCHED = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "10s",
    "distributed.admin.system-monitor.interval": "10s",
}


def main(address: str, n_workers: int) -> None:
    import dask

    dask.config.set(UNWATCHED)
    for name in ("distributed", "partita.engines.passes.exact_sums", "partita.execution"):
        importlib.import_module(name)

    children = []
    for _ in range(n_workers):
        child = os.fork()
        if child == 0:
            asyncio.run(host(address))
            os._exit(0)
        children.append(child)

    def end(*_):
        for child in children:
            os.kill(child, signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
