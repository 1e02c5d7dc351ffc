"""A test between this machine and another that needs no scenario: of `bulk run`, `echo run`, `ping`."""

from __future__ import annotations

import ipaddress
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcplab.cli.failure import Code, CommandError, code_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcplab.api import Run

Host = Annotated[
    str,
    typer.Argument(
        metavar="HOST",
        help="A host with `tcplab serve`, or a URL: tcplab://HOST:PORT, ssh://USER@HOST.",
        show_default=False,
    ),
]
Output = Annotated[Path | None, typer.Option("--output", "-o", metavar="DIR", help="Keep the results there.")]
# A bulk transfer has segments as large as the path carries: the MSS of this MTU is the largest that iperf3
# takes (-M). Flows of other kinds have sizes of their own.
_SEGMENTS = {"tcp": {"mtu": "9256 B"}}


def place_of(host: str) -> str:
    """The URL of a host; a bare name or address is that of a service."""
    if "://" in host or host.startswith("local:"):
        return host
    try:
        return f"tcplab://[{ipaddress.IPv6Address(host)}]"
    except ValueError:
        return f"tcplab://{host}"


@contextmanager
def run_between(host: str, flow: dict[str, Any], duration: str, output: Path | None) -> Iterator[Run]:
    """Run one flow between `here` and `there`; raises CommandError.

    Without `output` the results are gone with the context.
    """
    import tcplab
    from tcplab.cli.output import quiet
    from tcplab.engine.remote.place import PlaceError
    from tcplab.runner import UnsupportedError

    scenario = {
        "tcplab": 1,
        "name": str(flow["kind"]),
        "network": {
            "nodes": ["here", "there"],
            "links": [{"ends": ["here", "there"], "rate": "unlimited", **_SEGMENTS.get(flow["kind"], {})}],
        },
        "flows": [{"name": str(flow["kind"]), "from": "here", "to": "there", **flow}],
        "duration": duration,
    }
    with tempfile.TemporaryDirectory(prefix="tcplab-") as spare:
        try:
            done = tcplab.run(
                scenario,
                engine="remote",
                at={"here": "local:", "there": place_of(host)},
                output=output or Path(spare) / "run",
                progress=not quiet(),
            )
        except tcplab.RunFailedError as problem:
            said = str(problem).removeprefix(f"{problem.path}: ")
            # The names of the two nodes are not the user's.
            if said.startswith("there: "):
                said = f"{host}{said.removeprefix('there')}"
            raise CommandError(said, Code.FAILED) from None
        except PlaceError as problem:
            raise CommandError(str(problem), Code.INPUT) from None
        except UnsupportedError as problem:
            raise CommandError(str(problem), code_of(problem.problems)) from None
        yield done
