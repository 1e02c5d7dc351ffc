"""The tables of queue disciplines in docs/queues.md: `python -m tcplab.scenario.reference docs/queues.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .schema import json_schema

_BEGIN, _END = "<!-- keys -->\n", "<!-- /keys -->\n"


def replaced(page: str) -> str:
    """The page with its tables made anew."""
    before, _, rest = page.partition(_BEGIN)
    return before + _BEGIN + "\n".join(_tables()) + _END + rest.partition(_END)[2]


def _tables() -> Iterator[str]:
    schema = json_schema()
    queue = schema["$defs"]["Queue"]
    mapping = next(one for one in [queue, *queue.get("anyOf", ())] if "oneOf" in one)
    for variant in mapping["oneOf"]:
        properties: dict[str, Any] = dict(variant["properties"])
        if "$ref" in variant:
            properties |= schema["$defs"][variant["$ref"].rpartition("/")[2]]["properties"]
        yield f"`kind: {properties.pop('kind')['const']}`\n"
        yield "| key | |\n| --- | --- |"
        yield from (f"| `{key}` | {about.get('description', '')} |" for key, about in properties.items())
        yield ""


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(replaced(file.read_text(encoding="utf-8")), encoding="utf-8")
