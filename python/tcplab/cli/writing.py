"""Files the user named: whole or not at all, with one clear message if it cannot be."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tcplab.cli.failure import Code, CommandError


def write(path: Path, text: str) -> None:
    """Write a text file the user named."""
    from tcplab.results.files import write_text

    with naming(path):
        write_text(path, text)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Attribute errors inside to `path`, which the user gave: a bad path is wrong input."""
    from tcplab.results import ResultsError

    try:
        yield
    except ResultsError as problem:
        raise CommandError(str(problem), _code(problem.__cause__)) from None
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise CommandError(f"{problem.filename or path}: {reason}", _code(problem)) from None


def _code(cause: BaseException | None) -> Code:
    full = isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO)
    return Code.MACHINE if full else Code.INPUT
