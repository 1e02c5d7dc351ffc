"""The licences of crates, and where they come from: scripts/crates.py."""

from __future__ import annotations

from typing import Any

import pytest
from crates import allowed, findings


@pytest.mark.parametrize(
    "expression",
    [
        "MIT",
        "MIT/Apache-2.0",
        "LGPL-2.1-only OR BSD-2-Clause",
        "Apache-2.0 WITH LLVM-exception",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
    ],
)
def test_a_licence_that_offers_one_of_ours_is_allowed(expression: str) -> None:
    assert allowed(expression)


@pytest.mark.parametrize(
    "expression",
    ["", "GPL-3.0-only", "MIT AND GPL-2.0-only", "Apache-2.0 WITH Bison-exception-2.2", "mine", "MIT OR"],
)
def test_another_is_not(expression: str) -> None:
    assert not allowed(expression)


def test_each_finding_names_its_crate() -> None:
    index = "registry+https://example.net/crates.io-index"
    free: dict[str, Any] = {"version": "1.0.0", "license": "MIT", "source": index, "dependencies": []}
    any_version = {"name": "b", "req": "*"}
    packages = [
        free | {"name": "a"},
        free | {"name": "b", "license": None},
        free | {"name": "c", "source": "git+https://example.net/c"},
        free | {"name": "ours", "source": None, "dependencies": [any_version, any_version | {"path": "b"}]},
    ]
    assert list(findings({"packages": packages})) == [
        "b 1.0.0: licence not stated",
        "c 1.0.0: comes from git+https://example.net/c",
        "ours 1.0.0: any version of b would do",
    ]
