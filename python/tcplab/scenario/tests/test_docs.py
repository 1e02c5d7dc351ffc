"""The examples of docs/scenario.md are true."""

import re
from pathlib import Path

import pytest

from tcplab.scenario import ScenarioErrors, expand, json_schema, load
from tcplab.scenario.reference import replaced
from tcplab.scenario.tests.test_schema import properties

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "scenario.md").read_text(encoding="utf-8")
QUEUES = (ROOT / "docs" / "queues.md").read_text(encoding="utf-8")
EXAMPLE = next(block for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "tcplab: 1" in block)


def test_the_first_example_is_a_scenario() -> None:
    assert expand(load(EXAMPLE))["duration"] == 60_000_000_000


def test_the_example_of_a_mistake_is_what_is_printed(tmp_path: Path) -> None:
    file = tmp_path / "shallow.yaml"
    file.write_text(re.sub(r" +#.*", "", EXAMPLE).replace("100 Mbit/s", "100 mbps"), encoding="utf-8")
    with pytest.raises(ScenarioErrors) as refused:
        load(file)
    assert str(refused.value).replace(f"{tmp_path}/", "") in PAGE


@pytest.mark.parametrize("line", re.findall(r"^tcplab run (\S+\.yaml --set .*)$", PAGE, re.MULTILINE))
def test_the_overrides_shown_work(line: str) -> None:
    file, *rest = re.findall(r"'[^']*'|\S+", line)
    sets = [word.strip("'") for word in rest if word != "--set"]
    assert len(sets) == 2
    expand(load(ROOT / "scenarios" / file, sets))


@pytest.mark.parametrize("fragment", re.findall(r"```yaml\n((?:path|links):.*?)```", PAGE, re.DOTALL))
def test_the_fragments_of_networks_work(fragment: str) -> None:
    nodes = "nodes: [a, r]\n" if fragment.startswith("links") else ""
    body = "".join(f"  {line}\n" for line in (nodes + fragment).splitlines())
    flow = "{name: bulk, kind: tcp, from: a, to: r}" if nodes else "{name: bulk, kind: tcp}"
    text = f"tcplab: 1\nname: test\nnetwork:\n{body}flows: [{flow}]\nduration: 40 s\n"
    expand(load(text))


@pytest.mark.parametrize("fragment", re.findall(r"```yaml\n(network:.*?)```", PAGE, re.DOTALL))
def test_the_networks_shown_work(fragment: str) -> None:
    flows = "" if "\nflows:" in fragment else "flows: [{name: mesh, kind: tcp, between: all}]\n"
    expand(load(f"tcplab: 1\nname: test\n{fragment}{flows}"))


def test_every_key_of_the_language_is_on_a_page() -> None:
    names = ("scenario", "queues", "routing", "accelerators", "remote")
    pages = "".join((ROOT / "docs" / f"{name}.md").read_text("utf-8") for name in names)
    keys = {key for key, _ in properties(json_schema())}
    assert {key for key in keys if f"`{key}" not in pages and f"{key}:" not in pages} == set()


def test_the_keys_of_queues_are_the_present_ones() -> None:
    assert replaced(QUEUES) == QUEUES, "run: python -m tcplab.scenario.reference docs/queues.md"
