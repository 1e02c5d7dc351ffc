"""Names from strangers are shown with visible escapes, in the terminal and in pages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcplab import safe_text as words

ESCAPE = "\x1b[31mred\x1b]0;title\x07"
TRICK = f"{ESCAPE}\u202egnp.exe\u200b\x00\x9b31m"

SCENARIO = """\
tcplab: 1
name: short
network:
  path: {rate: 10 Mbit/s, rtt: 20 ms}
flows:
  - {name: bulk, kind: tcp, cc: cubic, duration: 1 s}
"""


def is_visible(text: str) -> bool:
    return all(char.isprintable() or char in "\n\t" for char in text)


@given(st.text())
def test_what_is_visible_holds_nothing_hidden(text: str) -> None:
    assert words.visible(text).isprintable()
    assert is_visible(words.visible(text, lines=True))
    shown = words.visible_json(json.dumps({text: [text]}))
    assert json.loads(shown) is not None
    if max(text, default="") <= "\uffff":
        ((key, (value,)),) = json.loads(shown).items()
        assert key == value
        # The short escapes of white space stay, as they do in a page's own text.
        assert all(char.isprintable() or char in "\n\t\r\b\f" or "\ud800" <= char <= "\udfff" for char in key)


@pytest.mark.parametrize("text", ["bulk", "Zürich, 東京", "a\\x1b", ""])
def test_text_without_tricks_is_left_alone(text: str) -> None:
    assert words.visible(text) == text


def test_escapes_are_those_of_python() -> None:
    assert words.visible("a\x1b[0m\u202eb\nc\udcff") == r"a\x1b[0m\u202eb\nc\udcff"


def tcplab(here: Path, arguments: Sequence[object]) -> str:
    """All that the command writes to the terminal."""
    ended = subprocess.run(
        [os.fsencode(sys.executable), b"-m", b"tcplab", *(os.fsencode(str(one)) for one in arguments)],
        cwd=here,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "120"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    text = (ended.stdout + ended.stderr).decode()
    assert "Traceback" not in text
    return text


def test_names_of_files_and_in_scenarios_are_escaped(tmp_path: Path) -> None:
    trick = TRICK.replace("\x00", "").replace("/", "")
    for name, text in (
        (f"{trick}.yaml", "tcplab: 1\nname: 3"),
        (f"\udcff{trick}.pcap", "no capture"),
        ("flow.yaml", SCENARIO.replace("bulk", f'"{TRICK}"'.encode("unicode_escape").decode())),
        ("control.yaml", SCENARIO.replace("cubic", f'"{TRICK}"'.encode("unicode_escape").decode())),
    ):
        (tmp_path / name).write_text(text)
        command = ("pcap", name) if name.endswith("pcap") else ("check", name)
        said = tcplab(tmp_path, command)
        assert is_visible(said), (name, said)
        assert r"\x1b" in said, (name, said)


def test_names_in_results_are_escaped(tmp_path: Path) -> None:
    """In the plan, the manifest and the tables of results that a stranger sent."""
    from tcplab import run

    run(SCENARIO, repeat=2, output=tmp_path / "r", seed=1)
    for path in (tmp_path / "r").glob("run-*"):
        plan = (path / "plan.yaml").read_text()
        (path / "plan.yaml").write_text(plan.replace("name: bulk", f"name: {json.dumps(TRICK)}"))
        manifest = json.loads((path / "manifest.json").read_text())
        manifest |= {"scenario": TRICK, "warnings": [TRICK], "message": TRICK, "overload": TRICK}
        (path / "manifest.json").write_text(json.dumps(manifest))
        for file in path.glob("*.parquet"):
            frame = pl.read_parquet(file)
            frame.with_columns(pl.col(pl.String).replace({"bulk": TRICK, "open": TRICK})).write_parquet(file)
    said = {
        command: tcplab(tmp_path, command)
        for command in (
            ("list", "."),
            ("show", "r"),
            ("show", "r", "--table", "sockets"),
            ("compare", "r", "r", "--output", "compare.html"),
            ("report", "r"),
        )
    }
    for command, text in said.items():
        assert is_visible(text), (command, text)
    assert r"\x1b[31m" in said["show", "r"]
    for page in (tmp_path / "r" / "report.html", tmp_path / "compare.html"):
        text = page.read_text()
        # plotly.js, which stands in the page, is not ours.
        hidden = {char for char in text if not char.isprintable() and char not in "\n\t"}
        assert not hidden & set(TRICK), (page.name, hidden)
        assert r"\x1b[31m" in text
        assert r"\u001b[31mred" not in text
