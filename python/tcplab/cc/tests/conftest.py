"""Files of controls to test with, in a cache of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tcplab.cc import cache
from tcplab.cc.template import starting_file


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cache.folder.cache_clear()
    yield tmp_path / "cache"
    cache.folder.cache_clear()


@pytest.fixture
def control(tmp_path: Path) -> Callable[..., Path]:
    """Write the starting file with changes: pairs of what stands there and what shall."""

    def write(*changes: tuple[str, str], name: str = "mine") -> Path:
        text = starting_file(name)
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        file = tmp_path / f"{name}.c"
        file.write_text(text, encoding="utf-8")
        return file

    return write
