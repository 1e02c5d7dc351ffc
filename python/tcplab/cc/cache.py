"""Where compiled controls are kept: by what they were made of, and safe for any number of users at once."""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


@functools.cache
def folder() -> Path:
    """The directory of compiled controls (XDG_CACHE_HOME); one for this process if that does not do.

    It must take files, and let them be mapped as programs: not on a file system that is mounted `noexec`.
    """
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    place = Path(home).expanduser() / "tcplab" / "controls"
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            if not os.statvfs(place).f_flag & os.ST_NOEXEC:
                return place
    except (OSError, RuntimeError):
        pass
    own = tempfile.mkdtemp(prefix="tcplab-controls-")
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return Path(own)


def key(*parts: str | bytes) -> str:
    """A key for these parts, and for no others."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def kept(name: str, make: Callable[[Path], None]) -> Path:
    """The file or directory of this name, which `make` is to write if it is not there.

    It is made under another name and renamed, so that it is there whole or not at all.
    """
    place = folder() / name
    if place.exists():
        return place
    with tempfile.TemporaryDirectory(dir=folder(), prefix=".making-") as workshop:
        made = Path(workshop) / name
        make(made)
        try:
            made.replace(place)
        except OSError:
            # Another was quicker with a directory of the same content.
            if not place.exists():
                raise
    return place
