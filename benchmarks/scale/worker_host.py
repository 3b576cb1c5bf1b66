"""Several Dask workers of one thread each in this process: ``python -m benchmarks.scale.worker_host ADDRESS N``.

For the scheduler they are like workers in processes of their own: each has its own connection, data and thread.
"""

import asyncio
import sys


async def host(address: str, n_workers: int) -> None:
    from distributed import Worker

    workers = [Worker(address, nthreads=1, memory_limit=0, dashboard=False) for _ in range(n_workers)]
    await asyncio.gather(*workers)
    await asyncio.gather(*(worker.finished() for worker in workers))


if __name__ == "__main__":
    asyncio.run(host(sys.argv[1], int(sys.argv[2])))
