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
def naming(path: Path, *, chosen: bool = True) -> Iterator[None]:
    """Attribute errors inside to `path`. A bad one that the user has chosen is wrong input."""
    from tcplab.results import ResultsError

    try:
        yield
    except (ResultsError, OSError) as problem:
        cause = problem.__cause__ if isinstance(problem, ResultsError) else problem
        if isinstance(problem, OSError):
            problem = ResultsError.from_os(problem.filename or path, problem)
        if chosen:
            raise CommandError(str(problem), _code(cause)) from None
        raise CommandError(str(problem), Code.MACHINE, "--output DIR puts results elsewhere") from None


def _code(cause: BaseException | None) -> Code:
    full = isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO)
    return Code.MACHINE if full else Code.INPUT
