"""The pages for developers agree with the tree."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tcplab import _core

ROOT = Path(__file__).parents[1]
# Of the package: what stands for itself.
_NO_ROOM = {"__init__.py", "__main__.py"}
_ROOTS = ("cc", "crates", "docs", "python", "scenarios", "scripts", "studies", "tests", "web")


def mapped() -> set[str]:
    """The places that the map of ARCHITECTURE.md lists, from the root."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("## The map")[1].split("\n## ")[0]
    places = set()
    for row in re.findall(r"^\| (`[^|]*) \|", text, re.MULTILINE):
        first, *others = (name.rstrip("/") for name in re.findall(r"`([^`]+)`", row))
        places |= {first, *(str(Path(first).parent / name) for name in others)}
    return places


def rooms() -> set[str]:
    """Every crate, every package and module of ours, and every directory at the root with files in it."""
    crates = {path.parent.relative_to(ROOT) for path in ROOT.glob("crates/*/Cargo.toml")}
    package = ROOT / "python/tcplab"
    modules = {path.relative_to(ROOT) for path in package.glob("*.py") if path.name not in _NO_ROOM}
    packages = {
        path.relative_to(ROOT) for path in package.iterdir() if path.is_dir() and path.name != "__pycache__"
    }
    covered = {Path("crates"), Path("python")}
    return {str(path) for path in crates | modules | packages | ({Path(root) for root in _ROOTS} - covered)}


def test_the_map_lists_every_room_and_no_other() -> None:
    assert mapped() == rooms()


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"])
def test_paths_that_pages_name_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    quoted = [Path(name) for name in re.findall(r"`([\w./-]+/[\w./-]*)`", text) if "NAME" not in name]
    named = [path for path in quoted if path.parts[0] in _ROOTS]
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def names_of_kinds() -> set[str]:
    """Of traffic, nodes and queues."""
    kinds = json.loads(_core.traffic_kinds()) + json.loads(_core.node_kinds())
    queues = json.loads(_core.schema("plan"))["$defs"]["Queue"]["oneOf"]
    return {kind["name"] for kind in kinds} | {queue["properties"]["kind"]["const"] for queue in queues}


def compared_kinds(tree: ast.AST, names: set[str]) -> Iterator[int]:
    """The lines that compare something called kind with the name of one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides: list[ast.AST] = [node.left, *node.comparators]
        elif isinstance(node, ast.Match):
            sides = [node.subject, *(case.pattern for case in node.cases)]
        else:
            continue
        words = {leaf.value for side in sides for leaf in ast.walk(side) if isinstance(leaf, ast.Constant)}
        if words & names and any("kind" in ast.unparse(side).lower() for side in sides):
            yield node.lineno


def test_only_the_plan_knows_kinds_by_their_names() -> None:
    """Elsewhere the traits that `crates/plan` gives a kind decide, so a new kind needs no change there."""
    names = names_of_kinds()
    assert {"tcp", "router", "droptail"} <= names
    package = ROOT / "python/tcplab"
    found = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in package.rglob("*.py")
        if "tests" not in file.parts and file.parent != package / "plan"
        for line in compared_kinds(ast.parse(file.read_text(encoding="utf-8")), names)
    ]
    assert found == []


def test_a_comparison_with_a_kind_is_found() -> None:
    names = names_of_kinds()
    for text in ('flow["kind"] == "tcp"', 'row.kind not in ("udp", "ping")', 'pl.col("kind") != "ping"'):
        assert list(compared_kinds(ast.parse(text), names)) == [1]
    assert list(compared_kinds(ast.parse('word == "tcp" or chart.kind == "bars"'), names)) == []


@pytest.mark.parametrize("crate", [path.parents[1].name for path in ROOT.glob("crates/*/tests/all.rs")])
def test_every_file_of_rust_tests_is_run(crate: str) -> None:
    """Cargo looks for none itself where `all.rs` names them."""
    folder = ROOT / "crates" / crate / "tests"
    manifest = (folder.parent / "Cargo.toml").read_text(encoding="utf-8")
    run = re.findall(r'^\[\[test\]\]\nname = "(\w+)"', manifest, re.MULTILINE)
    run += re.findall(r"^mod (\w+);", (folder / "all.rs").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted({path.stem for path in folder.glob("*.rs")} | {"common"}) == sorted(run)
