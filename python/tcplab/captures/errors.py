"""Opening captures, and what is wrong with those that can't be opened."""

from __future__ import annotations

from pathlib import Path


class CaptureError(Exception):
    """A capture, filter or flow that was asked for and is not there or not readable, in words."""


STDIN = Path("-")


def core_path(path: Path) -> Path | None:
    """The path as given to the core: `-` is standard input, which has no path."""
    return None if path == STDIN else path


def refused(path: Path, error: OSError | ValueError) -> CaptureError:
    """Why a capture could not be opened."""
    if isinstance(error, OSError):
        if error.errno is None:
            return CaptureError(str(error))
        hint = ": read it with sudo, or ask its owner" if isinstance(error, PermissionError) else ""
        reason = error.strerror or str(error)
        said = reason if isinstance(error, FileNotFoundError) else f"cannot be read: {reason}"
        return CaptureError(f"{path}: {said}{hint}")
    return CaptureError(str(error))


def filter_words(text: str, error: ValueError) -> CaptureError:
    """A mistake in a filter, shown at its place."""
    message, at, length = error.args
    return CaptureError(f"--filter: {message}\n  {text}\n  {' ' * at}{'^' * max(length, 1)}")
