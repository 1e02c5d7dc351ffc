"""The pages for developers agree with the tree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
