"""The driver of all engines: iterations, chains, restarts, convergence, time limit, callback, Ctrl-C, checkpoints.

An engine provides a state and its steps. A deterministic engine is run by :func:`iterate` until it converges, a sampler
by :func:`run_chain` through burn-in and draws, several chains by :func:`run_chains`. The rules are the same for all:

- The time limit is in wall seconds for the whole fit, compilation included. No iteration begins after it. Chains that
  run one after the other have equal shares of the remaining time.
- A callback is called after every iteration; if it returns True, the whole fit stops.
- Ctrl-C raises, or with ``keep_partial`` ends the fit with the result so far.
- Draws begin after burn-in. If some chains have draws, chains without a draw are left out of the result. If no chain
  has a draw, the result is the most probable of the last states, and it is marked as provisional.
- Burn-in and the number of draws are given, or they follow from the run: chains stop when their draws agree.
- With a checkpoint, a chain that was killed continues as if it had not been interrupted.
- The display of the progress counts the iterations of all runs together, and is closed when the fit ends in any way.
"""

from partita.engines.run.chains import (
    ChainResult,
    Chains,
    HasSchedule,
    Sampler,
    Settling,
    run_chain,
    run_chains,
)
from partita.engines.run.climbing import (
    EngineError,
    Run,
    best_run,
    iterate,
    iterate_from_checkpoint,
    run_restarts,
)
from partita.engines.run.control import STOPPED_EARLY, Control, Progress

__all__ = [
    "STOPPED_EARLY",
    "ChainResult",
    "Chains",
    "Control",
    "EngineError",
    "HasSchedule",
    "Progress",
    "Run",
    "Sampler",
    "Settling",
    "best_run",
    "iterate",
    "iterate_from_checkpoint",
    "run_chain",
    "run_chains",
    "run_restarts",
]
