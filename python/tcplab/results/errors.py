"""Errors of a result directory."""

from __future__ import annotations

import errno
import os
from pathlib import Path

_REASONS = {
    errno.ENOSPC: "the disk is full: make room on it, or write elsewhere",
    errno.EDQUOT: "the disk quota is used up: make room, or write elsewhere",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "the file system is read-only",
    errno.ENOENT: "no such file or directory",
    errno.EEXIST: "is a file, not a directory; give another path",
    errno.ENOTDIR: "a part of the path is not a directory",
}


class ResultsError(Exception):
    """A result directory cannot be written or read: the path, and why."""

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = Path(path)
        self.reason = reason

    def __reduce__(self) -> tuple[type[ResultsError], tuple[Path, str]]:
        """Let it leave the process of a run: pickle would make it from its message alone."""
        return type(self), (self.path, self.reason)

    @classmethod
    def from_os(cls, path: Path | str, error: OSError) -> ResultsError:
        """The error for a failed system call, in words."""
        reason = _REASONS.get(error.errno or 0) or error.strerror or str(error)
        return cls(path, reason)

    @classmethod
    def unreadable(cls, path: Path | str, error: OSError) -> ResultsError:
        """The error for what cannot be read, in the words of all commands."""
        if not isinstance(error, PermissionError):
            return cls.from_os(path, error)
        return cls(path, f"cannot be read: {error.strerror or os.strerror(errno.EACCES)}")


def require_directory(path: Path) -> None:
    """Raise ResultsError unless this is a directory: results may have moved."""
    if not path.is_dir():
        raise ResultsError(path, "no such directory")
