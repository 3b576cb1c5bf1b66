"""The wheel in a fresh environment: the lines of README as they stand there, by a user who has only the wheel."""

import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import partita

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAX_CPU_SECONDS = 120  # of each process: the system ends one that takes more
OPTIONS = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_ONLY_BINARY": ":all:", "PIP_QUIET": "1"}


def lines_of(language, beginning):
    """The lines of README's code blocks that begin in this way."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    return [line for block in blocks for line in block.splitlines() if line.startswith(beginning)]


def run(command, folder, **env):
    env = {**os.environ, **OPTIONS, **env}
    env.pop("PYTHONPATH", None)
    return subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """The files of the distribution with a wheel in dist/, built by pip as anybody would."""
    from build_wheel import PARTS

    folder = tmp_path_factory.mktemp("checkout")
    probe = run(
        f"{sys.executable} -m pip download --no-deps --retries 0 --timeout 20 -d probe hatchling", folder
    )
    if probe.returncode:
        pytest.skip(f"the package registry cannot be reached: {probe.stderr.strip().splitlines()[-1]}")
    for part in PARTS:
        if (ROOT / part).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc", "_compiled")
            shutil.copytree(ROOT / part, folder / part, ignore=ignored)
        else:
            shutil.copy(ROOT / part, folder)
    built = run(f"{sys.executable} -m pip wheel --no-deps -w dist .", folder)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.mark.slow
def test_the_lines_of_the_readme_in_a_fresh_environment(checkout, tmp_path):
    assert run(f"{sys.executable} -m venv fresh", tmp_path).returncode == 0
    fresh = {
        "PATH": f"{tmp_path / 'fresh' / 'bin'}:{os.environ['PATH']}",
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
    }
    (install,) = lines_of("sh", 'pip install "dist/')
    installed = run(install, checkout, **fresh)
    assert installed.returncode == 0, installed.stderr
    assert run("partita --version", tmp_path, **fresh).stdout.strip() == partita.__version__

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    limit = f"ulimit -t {MAX_CPU_SECONDS} && "
    demo = run(limit + "partita demo", tmp_path, **fresh)
    assert demo.returncode == 0, demo.stderr
    shutil.copy(tmp_path / "partita-demo" / "visitors.csv", tmp_path / "table.csv")
    (cluster,) = lines_of("sh", "partita cluster")
    clustered = run(limit + cluster, tmp_path, **fresh)
    assert clustered.returncode == 0, clustered.stderr
    assert (tmp_path / "table-partita" / "report.html").exists()
    for number, code in enumerate(re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)):
        (tmp_path / f"example{number}.py").write_text(code, encoding="utf-8")
        example = run(f"{limit}python example{number}.py", tmp_path, **fresh)
        assert example.stdout.splitlines() == re.findall(r"# prints: (.*)", code), example.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{used:.0f} s of CPU from the first command to the last answer")
