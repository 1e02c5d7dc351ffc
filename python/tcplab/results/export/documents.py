"""JSON documents as files."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tcplab.results.errors import ResultsError
from tcplab.results.files import write_bytes


def write_documents(documents: Mapping[str, Any], target: Path) -> list[Path]:
    """Write each document; a single one to `target`, several beside it with their names before the ending.

    Where the ending is `.gz`, they are compressed; the ending before it, as in `.flent.gz`, belongs to it.
    """
    make_directory(target.parent)
    compressed = target.suffix == ".gz"
    ending = "".join(target.suffixes[-2:]) if compressed else target.suffix
    if len(documents) == 1:
        paths = [target]
    else:
        paths = [target.with_name(f"{target.name.removesuffix(ending)}-{name}{ending}") for name in documents]
    for path, document in zip(paths, documents.values(), strict=True):
        data = (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()
        write_bytes(path, gzip.compress(data, mtime=0) if compressed else data)
    return paths


def make_directory(path: Path) -> None:
    """Make a directory and those above it; raises ResultsError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResultsError.from_os(path, error) from error


def number(value: Any) -> float | None:
    """A float that JSON can hold: null for what is not known."""
    return None if value is None or not math.isfinite(value) else float(value)
