"""Files that are either whole or absent: written beside and renamed into place."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from tcplab.results.errors import ResultsError


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a file beside `path`, then rename it into place.

    A reader sees the old file or the new one, never half of one. Raises ResultsError with the path and the
    reason; what stood at `path` before is then still there.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        # A pipe or device (/dev/stdout): there is nothing to rename over.
        try:
            write(path)
        except OSError as error:
            raise ResultsError.from_os(path, error) from error
        return
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise ResultsError.from_os(path, error) from error
    os.close(handle)
    beside = Path(name)
    try:
        write(beside)
        # mkstemp makes files private; results are as readable as any file the user makes.
        beside.chmod(0o666 & ~_MASK)
        beside.replace(path)
    except OSError as error:
        raise ResultsError.from_os(path, error) from error
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all."""

    def fill(beside: Path) -> None:
        beside.write_bytes(data)

    write_whole(path, fill)


def _umask() -> int:
    # The only portable way to read the umask is to set it.
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


# Read once: two threads doing it at the same time could leave the wrong one behind.
_MASK = _umask()
