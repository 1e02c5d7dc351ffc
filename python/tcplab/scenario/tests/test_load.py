"""Reading: positions, anchors, limits of size, and all mistakes at once."""

from pathlib import Path
from typing import Any

import pytest

from tcplab.scenario import ScenarioErrors, expand, from_data, load

GOOD = """tcplab: 1
name: test
network:
  path: {rate: 10 Mbit/s, rtt: 40 ms}
flows:
  - {name: bulk, kind: tcp}
"""


def refusals(text: str | Path) -> list[str]:
    with pytest.raises(ScenarioErrors) as refused:
        load(text)
    return [error.message for error in refused.value.errors]


def test_a_text_and_a_file_read_the_same(tmp_path: Path) -> None:
    file = tmp_path / "test.yaml"
    file.write_text(GOOD, encoding="utf-8")
    assert expand(load(GOOD)) == expand(load(file)) == expand(load(str(file)))


def test_python_data_reads_the_same() -> None:
    data = {
        "tcplab": 1,
        "name": "test",
        "network": {"path": {"rate": "10 Mbit/s", "rtt": "40 ms"}},
        "flows": [{"name": "bulk", "kind": "tcp"}],
    }
    assert expand(from_data(data)) == expand(load(GOOD))


def test_wrong_python_data_is_refused_without_lines() -> None:
    with pytest.raises(ScenarioErrors) as refused:
        from_data(
            {"tcplab": 1, "name": "test", "network": {"path": {"rate": 5, "rtt": "40 ms"}}, "flows": []}
        )
    assert [error.path for error in refused.value.errors] == ["flows", "network.path.rate"]
    assert str(refused.value.errors[1]).startswith("scenario: network.path.rate: `5` has no unit")


def test_an_error_knows_where_it_is_and_what_was_read() -> None:
    with pytest.raises(ScenarioErrors) as refused:
        load(GOOD.replace("40 ms", "40"))
    (error,) = refused.value.errors
    assert (error.line, error.column, error.width) == (4, 32, 2)
    assert (error.path, error.value, error.suggestion) == ("network.path.rtt", "40", "40 ms")


def test_anchors_and_merge_keys_save_typing() -> None:
    text = """tcplab: 1
name: test
network:
  nodes: [a, b, c]
  links:
    - &slow {ends: [a, b], rate: 1 Mbit/s, delay: 5 ms}
    - {<<: *slow, ends: [b, c], delay: 9 ms}
flows:
  - {name: bulk, kind: tcp, from: a, to: b}
"""
    links = expand(load(text))["links"]
    assert [link["forward"]["rate"] for link in links] == [1_000_000, 1_000_000]
    assert [link["forward"]["delay"] for link in links] == [5_000_000, 9_000_000]


def test_an_override_of_a_shared_node_leaves_the_others() -> None:
    text = """tcplab: 1
name: test
network:
  nodes: [a, b, c]
  links:
    - {name: one, ends: [a, b], queue: &queue {limit: 10 packets}, rate: 1 Mbit/s}
    - {name: two, ends: [b, c], queue: *queue, rate: 1 Mbit/s}
flows:
  - {name: bulk, kind: tcp, from: a, to: b}
"""
    links: Any = expand(load(text, ["network.links.one.queue.limit=99 packets"]))["links"]
    assert [link["forward"]["queue"]["limit"]["packets"] for link in links] == [99, 10]


def test_aliases_that_multiply_are_stopped_early() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    # Replaced in full they would be 10^12.
    assert refusals("\n".join(lines)) == ["more than 100000 values once aliases are replaced"]


@pytest.mark.parametrize("opener", ["[", "{a: ", "- "])
def test_deep_nesting_is_refused(opener: str) -> None:
    assert refusals("a:\n  " + opener * 5000 + "\n")[0].startswith("nested more than")


def test_a_huge_file_is_refused_unread(tmp_path: Path) -> None:
    file = tmp_path / "huge.yaml"
    file.write_bytes(b"a: " + b"x" * (5 << 20))
    assert refusals(file) == ["the file has more than 1048576 bytes, the maximum of a scenario"]


def test_a_file_that_is_not_utf8_says_where(tmp_path: Path) -> None:
    file = tmp_path / "latin1.yaml"
    file.write_bytes(b"tcplab: 1\nname: caf\xe9\n")
    with pytest.raises(ScenarioErrors) as refused:
        load(file)
    assert (refused.value.errors[0].line, refused.value.errors[0].column) == (2, 10)


@pytest.mark.parametrize("name", ["", ".", "a\0b"])
def test_a_file_that_cannot_be_read_is_one_error(name: str, tmp_path: Path) -> None:
    (message,) = refusals(tmp_path / name)
    assert message.startswith("cannot be read")


def test_a_file_that_is_not_there_is_one_error(tmp_path: Path) -> None:
    assert refusals(tmp_path / "missing.yaml") == ["No such file or directory"]


@pytest.mark.parametrize(
    "text", ["\n\0", "a: \x07\n", "\ud800\n", "a: b: c\n", '"\n', "%YAML 9.9\n---\na\n", "!!<x> a\n"]
)
def test_odd_texts_are_refused(text: str) -> None:
    assert refusals(text)


def test_words_of_yaml_1_1_are_words() -> None:
    made = expand(load(GOOD.replace("rtt: 40 ms", "rtt: 40 ms, left: {ecn: on, sack: off}")))
    assert made["nodes"][0]["tcp"]["ecn"] == "on"
    assert made["nodes"][0]["tcp"]["sack"] is False


def test_a_control_in_a_file_is_found_beside_the_scenario(tmp_path: Path) -> None:
    (tmp_path / "mine.c").write_text("its text", encoding="utf-8")
    file = tmp_path / "test.yaml"
    file.write_text(GOOD.replace("kind: tcp", "kind: tcp, cc: ./mine.c"), encoding="utf-8")
    cc: Any = expand(load(file))["flows"][0]["cc"]
    assert cc == {"name": "mine.c", "params": {}, "file": str(tmp_path / "mine.c"), "source": "its text"}
    (tmp_path / "mine.c").write_bytes(b"ok\n\xff")
    with pytest.raises(ScenarioErrors, match="is not UTF-8 in line 2"):
        load(file)
