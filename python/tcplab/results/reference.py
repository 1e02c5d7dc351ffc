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
from tcplab.results.schema import REQUIRED, ROWS, TABLES

BEGIN = "<!-- generated from the schema: begin -->"
END = "<!-- generated from the schema: end -->"


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
        yield ROWS[name]
        yield ""
        if REQUIRED[name]:
            yield f"Never null: {', '.join(f'`{column}`' for column in REQUIRED[name])}."
            yield ""
        yield "| column | type | unit | meaning |"
        yield "| --- | --- | --- | --- |"
        for column in columns:
            yield f"| `{column.name}` | {column.kind} | {column.unit} | {column.doc} |"
        yield ""


def _manifest() -> Iterator[str]:
    yield "### manifest.json"
    yield ""
    yield "| entry | meaning |"
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
