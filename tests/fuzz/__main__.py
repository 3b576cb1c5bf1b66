"""All fuzzers for a given time: ``make fuzz``, or ``python -m tests.fuzz --seconds 60 --seed 7 models files tables``.

Each round is run in a process of its own, which prints the seed of what it tries. A failure or a crash ends the run
with the command that repeats it.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time

ROUNDS = {"models": 100, "files": 500, "tables": 60}
MODULES = {
    "models": "tests.fuzz.model_files",
    "files": "tests.fuzz.table_files",
    "tables": "tests.fuzz.tiny_tables",
}
CHECKS = {"NUMBA_BOUNDSCHECK": "1", "PARTITA_CHECK_RECORDS": "1"}


def main() -> int:
    """Run rounds of all fuzzers in turn until the time is over."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description="Fuzz model files, table files and tables."
    )
    parser.add_argument("names", nargs="*", help="models, files, tables; all by default")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=None, help="of the first round; random by default")
    asked = parser.parse_args()
    seed = random.SystemRandom().randrange(10**9) if asked.seed is None else asked.seed
    names = asked.names or list(MODULES)
    end, rounds = time.monotonic() + asked.seconds, 0
    print(f"seed {seed}", flush=True)
    while time.monotonic() < end:
        name = names[rounds % len(names)]
        command = [sys.executable, "-m", MODULES[name], str(seed), str(ROUNDS[name])]
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, **CHECKS}, check=False
        )
        lines = done.stdout.splitlines() or ["none"]
        if done.returncode:
            checks = " ".join(f"{key}={value}" for key, value in CHECKS.items())
            print(done.stderr[-4000:])
            print(
                f"{name}: exit {done.returncode}; repeat it with\n"
                f"  {checks} python -m {MODULES[name]} {lines[-1].split()[0]} 1"
            )
            return 1
        print(f"{name}: {len(lines)} tried, seeds {seed} to {seed + ROUNDS[name] - 1}", flush=True)
        seed += ROUNDS[name]
        rounds += 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
