"""Build the distributions into dist/: the source, a wheel for every platform, and a wheel with compiled kernels.

The wheel with compiled kernels is for this platform and this version of Python. Its first fit compiles nothing if the
installed numba is of the same version and the processor has the features named here; otherwise the code is compiled
as usual. `partita warm --check` tells which of it can be used.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "src")
# Processors from about 2013 on (the level v3 of x86-64). Other platforms: what this processor has.
PROCESSORS = {
    "x86_64": (
        "x86-64-v3",
        "+avx,+avx2,+bmi,+bmi2,+cx16,+f16c,+fma,+lzcnt,+mmx,+movbe,+popcnt,+sse,+sse2,+sse3,+sse4.1,+sse4.2,"
        "+ssse3,+xsave",
    )
}
WARM = """
import json, sys
from partita.cli.warming import versions, warm
from partita.compilation import processor
done = warm(verbose=True)
record = {"versions": versions(), "processor": processor(), "tasks": done.figures["tasks"]}
open(sys.argv[1], "w").write(json.dumps(record, indent=1))
print(done.words)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--plain", action="store_true", help="without the wheel with compiled kernels")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    build("--sdist", "--wheel", source=ROOT, out=options.out)
    if not options.plain:
        with tempfile.TemporaryDirectory() as folder:
            build_compiled(Path(folder), options.out)
    found = sorted(options.out.glob("partita-*"))
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *found], check=True)
    for file in found:
        print(f"{file.name}: {file.stat().st_size / 2**20:.1f} MB")


def run_module(*args: object) -> None:
    subprocess.run([sys.executable, "-m", *map(str, args)], check=True, stdout=subprocess.DEVNULL)


def build(*what: str, source: Path, out: Path) -> None:
    run_module("build", *what, "--outdir", out, source)


def build_compiled(folder: Path, out: Path) -> None:
    """Compile everything in a copy of the package, and build a wheel that has the cache files in one folder."""
    for part in PARTS:
        if (ROOT / part).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.nbi", "*.nbc", "_compiled")
            shutil.copytree(ROOT / part, folder / part, ignore=ignored)
        else:
            shutil.copy(ROOT / part, folder)
    package = folder / "src" / "partita"
    compiled = package / "_compiled"
    compiled.mkdir()
    env = {**os.environ, "PYTHONPATH": str(folder / "src")}
    env.pop("NUMBA_CACHE_DIR", None)
    if platform.machine() in PROCESSORS:
        env["NUMBA_CPU_NAME"], env["NUMBA_CPU_FEATURES"] = PROCESSORS[platform.machine()]
    subprocess.run([sys.executable, "-c", WARM, compiled / "record.json"], check=True, env=env)
    for file in sorted(package.rglob("__pycache__/*.nb[ic]")):
        target = compiled / file.parent.parent.relative_to(package) / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(file, target)
    for cache in list(package.rglob("__pycache__")):
        shutil.rmtree(cache)
    wheels = folder / "wheels"
    build("--wheel", source=folder, out=wheels)
    (wheel,) = wheels.glob("*.whl")
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    tags = ["--python-tag", python, "--abi-tag", python, "--platform-tag", system]
    run_module("wheel", "tags", "--remove", *tags, wheel)
    (wheel,) = wheels.glob("*.whl")
    shutil.move(wheel, out / wheel.name)


if __name__ == "__main__":
    main()
