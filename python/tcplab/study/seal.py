"""A finished run's checksums: they distinguish a damaged run from a whole one when a study is resumed.

The file is `sha256sum`'s, so that `sha256sum -c` checks it, too. It is the last that a run writes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from tcplab.results.files import write_text

FILE = "SHA256SUMS"


def seal(run_dir: Path) -> None:
    """Write the checksums of all files of a run; raises ResultsError."""
    write_text(run_dir / FILE, "".join(f"{_sum(path)}  {name}\n" for name, path in _files(run_dir)))


def whole(run_dir: Path, needed: Iterable[str]) -> bool:
    """Whether all files are as they were sealed, the `needed` among them; no for a run without a seal."""
    try:
        lines = (run_dir / FILE).read_text(encoding="utf-8").splitlines()
        sums = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
        return set(needed) <= sums.keys() and all(_sum(run_dir / name) == sums[name] for name in sums)
    except (OSError, ValueError):
        return False


def _files(run_dir: Path) -> list[tuple[str, Path]]:
    found = [path for path in run_dir.rglob("*") if path.is_file() and path.name != FILE]
    return sorted((path.relative_to(run_dir).as_posix(), path) for path in found)


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
