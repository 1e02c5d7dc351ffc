"""The table of metrics in docs/studies.md: `python -m tcplab.study.reference docs/studies.md` makes it."""

from __future__ import annotations

import sys
from pathlib import Path

from tcplab.study.metrics import METRICS

_BEGIN, _END = "<!-- metrics -->\n", "<!-- /metrics -->"


def table() -> str:
    """The metrics as a Markdown table."""
    rows = [f"| `{m.name}` | {'share' if m.share else m.unit} | {m.doc} |\n" for m in METRICS.values()]
    return "| metric | unit | |\n| --- | --- | --- |\n" + "".join(rows)


def replaced(text: str) -> str:
    """The page with its table made anew."""
    before, _, rest = text.partition(_BEGIN)
    return before + _BEGIN + table() + _END + rest.partition(_END)[2]


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(replaced(page.read_text(encoding="utf-8")), encoding="utf-8")
