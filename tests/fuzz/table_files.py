"""Mutated table files: each is read or refused with a `FileError` or `ValueError`; nothing else, and no crash."""

from __future__ import annotations

import io
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

ROWS = 40


def originals() -> dict[str, bytes]:
    """Small files of every format that can be written here."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=ROWS)
    words = np.array(["red", "green", "blue\u00e9", ""], dtype=object)[rng.integers(4, size=ROWS)]
    found = {"csv": _csv(numbers, words).encode()}
    array = io.BytesIO()
    np.save(array, np.column_stack([numbers, numbers]))
    found["npy"] = array.getvalue()
    if find_spec("pyarrow"):
        found |= _arrow_files(numbers, words)
    return found


def _csv(numbers: np.ndarray, words: np.ndarray) -> str:
    lines = [
        f'{number:.6f},"{word}",{k % 5}' for k, (number, word) in enumerate(zip(numbers, words, strict=True))
    ]
    return "\n".join(["size,color,level", *lines]) + "\n"


def _arrow_files(numbers: np.ndarray, words: np.ndarray) -> dict[str, bytes]:
    import pyarrow
    from pyarrow import feather, parquet

    holes = [None if k % 7 == 0 else float(number) for k, number in enumerate(numbers)]
    table = pyarrow.table(
        {
            "size": pyarrow.array(holes),
            "color": pyarrow.array(words.tolist()),
            "level": pyarrow.array(words.tolist()).dictionary_encode(),
            "day": pyarrow.array(np.arange(ROWS).astype("datetime64[D]")),
            "count": pyarrow.array(range(ROWS), pyarrow.int8()),
        }
    )
    found = {}
    for name, write in {
        "parquet": lambda file: parquet.write_table(table, file),
        "arrow": lambda file: feather.write_feather(table, file, compression="uncompressed"),
        "feather": lambda file: feather.write_feather(table, file, compression="lz4"),
    }.items():
        buffer = io.BytesIO()
        write(buffer)
        found[name] = buffer.getvalue()
    return found


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """The content with a few bytes changed, a part cut out, or a part repeated."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 6))):
        at = int(rng.integers(len(data)))
        kind = rng.integers(5)
        if kind == 0:
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            data[at] = int(rng.integers(256))
        elif kind == 2:
            data[at : at + 8] = int(rng.integers(2**63)).to_bytes(8, "little")[: len(data) - at]
        elif kind == 3:
            del data[at : at + int(rng.integers(1, 20))]
        else:
            data[at:at] = data[at : at + int(rng.integers(1, 20))]
        if len(data) < 2:
            break
    return bytes(data)


def try_one(seed: int, folder: Path, files: dict[str, bytes]) -> str:
    """Read one mutant in all ways; returns what happened."""
    from partita.execution import open_chunks
    from partita.table import FileError, read_file, read_table

    rng = np.random.default_rng(seed)
    ending = list(files)[int(rng.integers(len(files)))]
    path = folder / f"mutant.{ending}"
    path.write_bytes(mutated(files[ending], rng))
    outcome = "read"
    try:
        table = read_file(path)
        read_table(table.ordered())
    except (FileError, ValueError):
        outcome = "refused"
    if ending in ("parquet", "arrow", "feather"):
        try:
            source = open_chunks(path)
            for chunk in range(len(source.sizes)):
                read_table(source._remembered(chunk))
        except ValueError:
            outcome = "refused"
    return outcome


def main(first: int, rounds: int) -> None:
    """Run seeds ``first``, ``first + 1``, ...; each is printed before it begins, so that a crash names its own."""
    import warnings

    warnings.simplefilter("ignore")
    files = originals()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + rounds):
            print(seed, end=" ", flush=True)
            print(try_one(seed, Path(folder), files), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
