"""The devcontainer file: it asks for what the kernel engine needs, and runs targets that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

TREE = Path(__file__).parents[1]


def _settings() -> dict[str, Any]:
    text = (TREE / ".devcontainer/devcontainer.json").read_text(encoding="utf-8")
    # JSON with comments, each on a line of its own.
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("//")]
    return dict(json.loads("\n".join(lines)))


def test_its_targets_exist() -> None:
    make, *targets = _settings()["postCreateCommand"].split()
    assert make == "make"
    makefile = (TREE / "Makefile").read_text(encoding="utf-8")
    for target in targets:
        assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), target


def test_it_asks_for_the_capabilities_that_the_page_names() -> None:
    page = (TREE / "docs/containers.md").read_text(encoding="utf-8")
    named = set(re.findall(r"--cap-add ([A-Z_]+)", page))
    asked = {argument.partition("--cap-add=")[2] for argument in _settings()["runArgs"]} - {""}
    assert asked == named
    for argument in ("--device /dev/net/tun", "--security-opt systempaths=unconfined"):
        assert argument in page
        assert argument.replace(" ", "=") in _settings()["runArgs"]
