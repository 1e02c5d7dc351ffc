"""JSON documents as files."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tcplab.results.errors import ResultsError
from tcplab.results.files import write_text


def write_documents(documents: Mapping[str, Any], target: Path) -> list[Path]:
    """Write each document; a single one to `target`, several beside it with their names before the ending."""
    make_directory(target.parent)
    if len(documents) == 1:
        paths = [target]
    else:
        paths = [target.with_name(f"{target.stem}-{name}{target.suffix}") for name in documents]
    for path, document in zip(paths, documents.values(), strict=True):
        write_text(path, json.dumps(document, indent=1, allow_nan=False) + "\n")
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
