"""EM on an NVIDIA GPU: time per iteration and of whole fits, a lower bound, and agreement with the host.

Label matrices of M = 20 members with 10 labels each, K = 16 clusters, already on the device as bytes. An iteration is
a whole step of EM: the pass over the rows on the device, the transfer of counts to the host, and new parameters there.
A whole fit has one start and twenty iterations at most; the first one of a process, which compiles, and the median of
three more are timed, with the labels left on the device, and then the fetching of labels. A chain of
the sub-cluster sampler starts from one cluster.
The fused kernels are compared with the portable version (array API) and with two implementations in plain torch:
one-hot products and gathers, in chunks. The lower bound is the larger of two times: the bytes of the labels divided by
the bandwidth that a copy reaches here, and the operations of the one-hot products divided by the rate that a product
of half floats reaches here. Without a GPU, only the host is timed.
"""

from __future__ import annotations

from benchmarks.processes import in_own_process

M, LEVELS, K = 20, 10, 16
SIZES = (10_000_000, 100_000_000)


def run(*, full: bool, repeats: int) -> dict:
    import importlib.util

    found: dict = {"host": in_own_process(on_host, n_rows=2_000_000 if full else 100_000)}
    print(f"   host: {found['host']['ms_per_million_rows']:.1f} ms a million rows on one thread", flush=True)
    if importlib.util.find_spec("torch"):
        sizes = SIZES if full else (1_000_000,)
        found |= in_own_process(on_device, sizes=list(sizes), repeats=max(repeats, 5))
    if "device" in found:
        print(f"   iterations: {found['sizes']}", flush=True)
        found["fits"] = in_own_process(whole_fits, sizes=list(sizes))
        print(f"   fits: {found['fits']}", flush=True)
        found["chains"] = [in_own_process(sub_cluster_chain, n_rows=n_rows) for n_rows in sizes]
    bars = {}
    if "device" in found and full:
        largest = found["sizes"][-1]
        bars = {
            "N = 1e8: an iteration in 25 ms": largest["fused_ms"] <= 25.0,
            "the same parameters to 1e-6": max(found["errors"].values()) <= 1e-6,
            "N = 1e8: a whole fit in 1.5 s": slowest(found["fits"]["sizes"][-1]) <= 1.5,
            "N = 1e7: a whole fit in 0.4 s": slowest(found["fits"]["sizes"][0]) <= 0.4,
            "portable version within 4 times of plain torch": largest["portable_ms"]
            <= 4.0 * largest["torch_one_hot_ms"],
        }
    return {"summary": found, "size": {"n_columns": M, "n_levels": LEVELS, "n_clusters": K}, "bars": bars}


def on_host(n_rows: int) -> dict:
    """One thread, in memory."""
    import time

    import numpy as np

    from partita.engines.climb import em
    from partita.engines.climb.seeding import label_statistics
    from partita.engines.passes.rows import pack
    from partita.families import Block, Categorical
    from partita.partitions import FiniteDirichlet

    rng = np.random.default_rng(0)
    z = rng.integers(K, size=n_rows)
    codes = np.where(
        rng.random((n_rows, M)) < 0.3,
        rng.integers(LEVELS, size=(n_rows, M)),
        (z[:, None] + np.arange(M)) % LEVELS,
    ).astype(np.int8)
    blocks = pack([Block(Categorical.default([LEVELS] * M), codes, tuple(range(M)))], n_rows)
    weights = np.ones(n_rows)
    start = label_statistics(blocks, weights, rng.integers(K, size=n_rows), K)
    state = em.init(blocks, FiniteDirichlet(float(K), K), start, maximum_likelihood=False)
    state = em.step(state, blocks, weights)
    seconds = []
    for _ in range(3):
        began = time.process_time()
        state = em.step(state, blocks, weights)
        seconds.append(time.process_time() - began)
    return {"n_rows": n_rows, "ms_per_million_rows": round(1e9 * sorted(seconds)[1] / n_rows, 2)}


def on_device(sizes: list[int], repeats: int) -> dict:
    import torch

    if not torch.cuda.is_available():
        return {}
    found: dict = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "ceilings": ceilings(),
        "errors": errors(),
        "gaussian": gaussian(),
    }
    print(found, flush=True)
    found["sizes"] = [measure(n, found["ceilings"], repeats) for n in sizes]
    return found


def timed(work, repeats: int = 5) -> float:
    """Median milliseconds, the device having finished."""
    import time

    import torch

    work()
    torch.cuda.synchronize()
    out = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        torch.cuda.synchronize()
        out.append(1e3 * (time.perf_counter() - began))
    return sorted(out)[len(out) // 2]


def ceilings() -> dict:
    import torch

    x = torch.empty(1 << 31, dtype=torch.uint8, device="cuda")
    y = torch.empty_like(x)
    copy = timed(lambda: y.copy_(x))
    a, b = (torch.randn((8192, 8192), device="cuda", dtype=torch.float16) for _ in range(2))
    product = timed(lambda: a @ b)
    return {
        "copy_tb_per_s": round(2 * x.numel() / copy / 1e9, 3),
        "half_tflops": round(2 * 8192**3 / product / 1e9, 1),
    }


def planted(n_rows: int, seed: int = 0):
    """Labels as bytes [column, row] on the device: sixteen groups, 30% of the labels redrawn."""
    import torch

    g = torch.Generator(device="cuda").manual_seed(seed)
    z = torch.randint(0, K, (n_rows,), generator=g, device="cuda", dtype=torch.uint8)
    codes = torch.empty((M, n_rows), dtype=torch.uint8, device="cuda")
    for d in range(M):
        names = torch.randint(0, LEVELS, (K,), generator=g, device="cuda", dtype=torch.uint8)
        redrawn = torch.rand(n_rows, generator=g, device="cuda") < 0.3
        other = torch.randint(0, LEVELS, (n_rows,), generator=g, device="cuda", dtype=torch.uint8)
        codes[d] = torch.where(redrawn, other, names[z.int()])
    return codes


def state_of(codes):
    """Blocks on the device, and EM one pass after its seeds."""
    import numpy as np

    from partita.engines.climb import em
    from partita.engines.climb.seeding import seed_parameters, seed_statistics
    from partita.engines.passes.device_rows import DeviceCodes
    from partita.engines.passes.rows import collect
    from partita.families import Block, Categorical
    from partita.partitions import FiniteDirichlet

    blocks = [Block(Categorical.default([LEVELS] * M), DeviceCodes(codes, {}), tuple(range(M)))]
    weights = np.broadcast_to(np.ones(1), codes.shape[1])
    seeds = seed_statistics(blocks, weights, K, np.random.default_rng(0))
    start = collect(blocks, weights, seed_parameters(blocks, seeds))
    return em.init(blocks, FiniteDirichlet(float(K), K), start, maximum_likelihood=False), blocks, weights


def measure(n_rows: int, ceiling: dict, repeats: int) -> dict:
    import torch

    from partita.engines.climb import em
    from partita.engines.passes import device as device_passes

    codes = planted(n_rows)
    state, blocks, weights = state_of(codes)
    fused = timed(lambda: em.step(state, blocks, weights), repeats)
    whole, device_passes._fused = device_passes._fused, lambda blocks, K: None
    portable = timed(lambda: em.step(state, blocks, weights), 3)
    device_passes._fused = whole
    at = em.parameters(state)
    out = {
        "n_rows": n_rows,
        "fused_ms": round(fused, 3),
        "portable_ms": round(portable, 2),
        "torch_one_hot_ms": round(timed(lambda: one_hot_step(codes, at), 3), 2),
        "torch_gather_ms": round(timed(lambda: gather_step(codes, at), 3), 2),
        "bytes_floor_ms": round(n_rows * M / ceiling["copy_tb_per_s"] / 1e9, 3),
        "operations_floor_ms": round(4.0 * n_rows * M * LEVELS * K / ceiling["half_tflops"] / 1e9, 3),
        "peak_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2),
    }
    print(out, flush=True)
    return out


def one_hot_step(codes, at, chunk: int = 1 << 20):
    """The yardstick: one-hot rows, two products."""
    import torch

    theta = torch.tensor(at.thetas[0].reshape(M, LEVELS + 1, K)[:, 1:].reshape(-1, K), device="cuda").float()
    log_weights = torch.tensor(at.log_weights, device="cuda").float()
    levels = torch.arange(LEVELS, device="cuda", dtype=torch.uint8)
    S = torch.zeros(theta.shape, dtype=torch.float64, device="cuda")
    for lo in range(0, codes.shape[1], chunk):
        T = (codes[:, None, lo : lo + chunk] == levels[None, :, None]).reshape(M * LEVELS, -1).float()
        R = torch.softmax(T.T @ theta + log_weights, dim=1)
        S += (T @ R).double()
    return S.cpu()


def gather_step(codes, at, chunk: int = 1 << 20):
    """The other yardstick: look up and add."""
    import torch

    theta = torch.tensor(at.thetas[0].reshape(M, LEVELS + 1, K)[:, 1:], device="cuda").float()
    log_weights = torch.tensor(at.log_weights, device="cuda").float()
    S = torch.zeros((M, LEVELS, K), dtype=torch.float32, device="cuda")
    for lo in range(0, codes.shape[1], chunk):
        own = codes[:, lo : lo + chunk].int()
        L = log_weights.expand(own.shape[1], K).clone()
        for d in range(M):
            L += theta[d][own[d]]
        R = torch.softmax(L, dim=1)
        for d in range(M):
            S[d].index_add_(0, own[d], R)
    return S.cpu()


def errors(n_rows: int = 1_000_000) -> dict:
    """Largest difference of a probability after one iteration from the same start: device minus host."""
    import numpy as np

    from partita.engines.climb import em
    from partita.engines.passes import device as device_passes
    from partita.families import Block

    codes = planted(n_rows, seed=1)
    codes[3, ::7] = 255
    state, blocks, weights = state_of(codes)
    rows = codes.cpu().numpy().T.astype(np.int16)
    here = [Block(blocks[0].family, np.ascontiguousarray(np.where(rows == 255, -1, rows)), blocks[0].columns)]
    want = em.parameters(em.step(state, here, np.ones(n_rows)))
    found = {"fused": em.parameters(em.step(state, blocks, weights))}
    whole, device_passes._fused = device_passes._fused, lambda blocks, K: None
    found["portable"] = em.parameters(em.step(state, blocks, weights))
    device_passes._fused = whole
    return {
        name: float(
            max(
                np.abs(np.exp(at.log_weights) - np.exp(want.log_weights)).max(),
                np.abs(np.exp(at.thetas[0]) - np.exp(want.thetas[0])).max(),
            )
        )
        for name, at in found.items()
    }


def gaussian(n_rows: int = 10_000_000, n_columns: int = 10) -> dict:
    """Diagonal and full Gaussians by the portable way: one iteration of VB, and its difference from the host's."""
    from functools import partial

    import numpy as np
    import torch

    from partita.engines.climb import vb
    from partita.engines.climb.seeding import label_statistics
    from partita.engines.passes.device_rows import DeviceReals
    from partita.families import Block, GaussianDiagonal, GaussianFull
    from partita.partitions import FiniteDirichlet

    g = torch.Generator(device="cuda").manual_seed(0)
    centers = 2.0 * torch.randn((K, n_columns), generator=g, device="cuda")
    z = torch.randint(0, K, (n_rows,), generator=g, device="cuda")
    X = torch.randn((n_rows, n_columns), generator=g, device="cuda") + centers[z]
    few = 100_000
    out = {}
    for name, family in {
        "diagonal": GaussianDiagonal.default(n_columns),
        "full": GaussianFull.default(n_columns),
    }.items():
        center, scale = np.zeros(n_columns), np.full(n_columns, 2.0)
        columns = tuple(range(n_columns))
        device = [Block(family, DeviceReals(X, columns, center, scale), columns)]
        part = [Block(family, DeviceReals(X[:few], columns, center, scale), columns)]
        host = [Block(family, X[:few].cpu().numpy().astype(np.float64) / 2.0, columns)]
        labels = z[:few].cpu().numpy()
        start = label_statistics(host, np.ones(few), (labels + (np.arange(few) % 5 == 0)) % K, K)
        state = vb.init(host, FiniteDirichlet(float(K), K), start)
        want, got = (vb.step(state, blocks, np.ones(few)).statistics for blocks in (host, part))
        weights = np.broadcast_to(np.ones(1), n_rows)
        out[name] = {
            "n_rows": n_rows,
            "n_columns": n_columns,
            "ms": round(timed(partial(vb.step, state, device, weights), 3), 1),
            "largest_difference": float(np.abs(got.S[0] - want.S[0]).max() / few),
        }
    return out


def estimators() -> dict:
    """The estimators whose whole fits are timed."""
    from partita import NBCE, Mixture, MixtureConsensus

    asked = {"n_clusters": K, "n_init": 1, "max_iter": 20, "tol": 0.0, "random_state": 0}
    return {
        "em": Mixture("categorical", inference="em", **asked),
        "vb": Mixture("categorical", inference="vb", **asked),
        "mixture_consensus": MixtureConsensus(**asked),
        "nbce": NBCE(inference="vb", **asked),
    }


def whole_fits(sizes: list[int]) -> dict:
    """Seconds of whole fits: for each number of rows by estimator."""
    import time
    import warnings

    import torch

    warnings.simplefilter("ignore")  # twenty iterations need not converge
    out: list[dict] = []
    for n_rows in sizes:
        X = planted(n_rows).T
        found: dict = {"n_rows": n_rows}
        out.append(found)
        for name, model in estimators().items():
            seconds = []
            for _ in range(4):
                torch.cuda.synchronize()
                began = time.perf_counter()
                model.fit(X)
                torch.cuda.synchronize()
                seconds.append(time.perf_counter() - began)
            began = time.perf_counter()
            n_labels = len(model.labels_)
            assert n_labels == n_rows
            found[name] = {
                "first_s": round(seconds[0], 3),
                "warm_s": round(sorted(seconds[1:])[1], 3),
                "labels_s": round(time.perf_counter() - began, 3),
                "iterations": int(model.n_iter_),
            }
            print(n_rows, name, found[name], flush=True)
    return {"sizes": out}


def slowest(fits: dict) -> float:
    """Seconds of the slowest estimator, warm."""
    return max(fit["warm_s"] for fit in fits.values() if isinstance(fit, dict))


def sub_cluster_chain(n_rows: int, n_steps: int = 40) -> dict:
    """Seconds per step of the sub-cluster sampler from one cluster, and how well it finds the planted groups."""
    import time

    import numpy as np
    import torch

    from partita.engines.passes.device_rows import DeviceCodes
    from partita.engines.subclusters import sampler
    from partita.execution.weights import unit_weights
    from partita.families import Block, Categorical
    from partita.partitions import DirichletProcess, bind

    block = Block(Categorical.default([LEVELS] * M), DeviceCodes(planted(n_rows), {}), tuple(range(M)))
    weights, prior = unit_weights(n_rows), bind(DirichletProcess(1.0), float(n_rows))
    state = sampler.init([block], weights, prior, np.random.default_rng(0))
    seconds = []
    for t in range(n_steps):
        began = time.perf_counter()
        state = sampler.step(state, [block], prior, warm_up=t < n_steps - 10)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    return {
        "n_rows": n_rows,
        "warm_up_step_s": round(float(np.median(seconds[1:-10])), 3),
        "step_s": round(float(np.median(seconds[-10:])), 3),
        "all_steps_s": round(sum(seconds), 1),
        "n_steps": n_steps,
        "n_clusters": len(state.n),
        "peak_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2),
    }
