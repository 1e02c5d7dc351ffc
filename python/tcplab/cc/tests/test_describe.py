"""Descriptions of controls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tcplab.cc.compiler import Source
from tcplab.cc.describe import Parameter, describe, described_file, file_of, first_comment, shipped


def test_every_control_says_what_it_is_and_where_it_is_published() -> None:
    for name in shipped():
        description = describe(name)
        assert description.name == name
        assert description.about
        assert description.published, name
        assert description.phases


def test_a_control_says_what_it_shows_of_its_state() -> None:
    assert [gauge.label for gauge in describe("copa").gauges] == [
        "velocity",
        "inverse_delta (packets)",
        "queueing_delay (ms)",
    ]
    assert all(gauge.doc for name in shipped() for gauge in describe(name).gauges)


def test_a_control_is_known_by_its_other_names_too() -> None:
    assert describe("tl_bbr1") == describe("bbr") == describe("bbr1")
    assert file_of("bbr")[0] == Path("bbr1.c")
    with pytest.raises(ValueError, match="nosuch"):
        describe("nosuch")


def test_a_users_file_is_described_as_a_shipped_one_is(control: Callable[..., Path]) -> None:
    description = described_file(Source.read(control()))
    assert (description.name, description.phases) == (
        "mine",
        ("SLOW_START", "CONGESTION_AVOIDANCE", "RECOVERY"),
    )
    (beta,) = description.parameters
    assert (beta.name, beta.usual, beta.range) == ("beta", "0.5", "0.001 to 0.999")
    assert [gauge.label for gauge in description.gauges] == ["reductions"]
    assert description.published == ("RFC 5681",)


def test_ranges_are_reported_in_few_digits_that_mean_the_same() -> None:
    parameter = Parameter("rtt", "", 25, 1, 1000, 1)
    assert parameter.range == "1 to 1000"
    assert parameter.holds(1000)
    assert not parameter.holds(1001)
    tenth = Parameter("share", "", 717 / 1024, 1 / 1024, 1023 / 1024, 1 / 1024)
    assert (tenth.usual, tenth.range) == ("0.7", "0.001 to 0.999")
    assert tenth.holds(0.001)
    assert not tenth.holds(0.0001)


def test_the_licence_is_not_what_a_file_is_about() -> None:
    text = "/* SPDX-License-Identifier: MIT */\n/*\n * One: does this.\n * And that.\n */\n/* More. */"
    assert first_comment(text) == "One: does this. And that."
    assert first_comment("int none;") == ""
