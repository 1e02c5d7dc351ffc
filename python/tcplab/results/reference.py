"""The reference of tables and manifest in docs/results.md, made from the schema.

`python -m tcplab.results.reference docs/results.md` rewrites the generated part of the file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from tcplab.results.files import write_text
from tcplab.results.manifest import Host, Manifest
from tcplab.results.schema import TABLES

BEGIN = "<!-- generated from the schema: begin -->"
END = "<!-- generated from the schema: end -->"

_ROWS = {
    "flows": "One row per stream. Of a request, http or echo flow, which goes both ways, counts are "
    "those of both ends.",
    "intervals": "One row per stream and flow sample: what happened in (time - duration, time], "
    "counted as in `flows`.",
    "sockets": "One row per sending TCP socket and sample.",
    "gauges": "One row per socket sample and figure that the congestion control publishes of itself "
    "(docs/controls.md lists them); none while the control has no value for it.",
    "legs": "One row per connection that an accelerator has split, leg and socket sample "
    "(docs/accelerators.md).",
    "queues": "One row per link direction and sample.",
    "queue_classes": "One row per class, link direction and sample, for a queue discipline with classes. "
    "Of more than 16 classes only those have a row in which packets wait.",
    "queue_gauges": "One row per figure that a queue discipline shows of itself, link direction and sample "
    "(docs/queues.md lists them).",
    "packets": "One row per packet event; recorded when the scenario says `sample: {packets: true}`.",
    "echoes": "One row per request and response. Of an echo flow with more than 1,000,000 of them the first "
    "100 of each client and size have a row each, the others a row per client, size and round-trip time.",
    "echo_batches": "Where `echoes` holds histograms: up to 512 batches of consecutive ones each.",
    "fetches": "One row per request of an `http` flow that was answered.",
    "pings": "One row per probe.",
    "hosts": "One row per host sample.",
    "events": "One row per change of state.",
    "routes": "One row per route at the start of a run and per change, of routers with routing protocols.",
}


def reference() -> str:
    """The generated part, in Markdown."""
    return "\n".join([BEGIN, "", *_tables(), *_manifest(), END])


def updated(text: str) -> str:
    """A page with its generated part made anew; raises ValueError when it has none."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no {BEGIN} ... {END} in the page")
    return before + reference() + after


def _tables() -> Iterator[str]:
    for name, columns in TABLES.items():
        yield f"### {name}"
        yield ""
        yield _ROWS[name]
        yield ""
        yield "| column | type | unit | what it holds |"
        yield "| --- | --- | --- | --- |"
        for column in columns:
            yield f"| `{column.name}` | {column.kind} | {column.unit} | {column.doc} |"
        yield ""


def _manifest() -> Iterator[str]:
    yield "### manifest.json"
    yield ""
    yield "| entry | what it holds |"
    yield "| --- | --- |"
    for name, about in _entries(Manifest):
        yield f"| `{name}` | {about} |"
        if name == "host":
            for inner, more in _entries(Host):
                yield f"| `host.{inner}` | {more} |"
    yield ""


def _entries(of: type) -> Iterator[tuple[str, Any]]:
    for entry in fields(of):
        yield entry.name, entry.metadata["doc"]


if __name__ == "__main__":
    page = Path(sys.argv[1])
    write_text(page, updated(page.read_text(encoding="utf-8")))
