"""Tables of the commands on a terminal."""

from __future__ import annotations

import pytest

from tcplab.cli import output

ROWS = [("first", "one sentence, which is longer than the room that is left for it"), ("second-one", "short")]


def printed(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr(output, "width", lambda: width)
    output.table(["name", "description"], ROWS)
    return capsys.readouterr().out


def test_the_widest_column_goes_on_in_the_next_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(50, monkeypatch, capsys).splitlines() == [
        "name        description",
        "first       one sentence, which is longer than the",
        "            room that is left for it",
        "second-one  short",
    ]


def test_rows_are_blocks_where_that_would_be_too_narrow(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert printed(30, monkeypatch, capsys).startswith("name         first\ndescription  one sentence, ")


def test_a_path_is_never_broken(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(output, "width", lambda: 40)
    output.table(["path", "name"], [("runs/a-path-with-hyphens-of-39-characters", "first")])
    assert capsys.readouterr().out.startswith("path  runs/a-path-with-hyphens-of-39-characters\n")
