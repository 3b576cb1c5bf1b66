"""Mutated table files, in a process of their own: a crash of a library must not end the tests."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(first: int, rounds: int) -> str:
    command = [sys.executable, "-m", "tests.fuzz.table_files", str(first), str(rounds)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    last = (done.stdout.splitlines() or ["none"])[-1]
    assert done.returncode == 0, (
        f"exit {done.returncode} at seed {last}: python -m tests.fuzz.table_files {last.split()[0]} 1\n"
        f"{done.stderr[-2000:]}"
    )
    return done.stdout


def test_mutated_tables_are_read_or_refused(global_random_seed):
    outcomes = run(1000 * global_random_seed, 150)
    assert "read" in outcomes and "refused" in outcomes


@pytest.mark.slow
def test_row_83_many_mutated_tables(global_random_seed):
    run(100_000 + 10_000 * global_random_seed, 5000)
