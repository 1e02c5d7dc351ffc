"""Checks the crates that are built in: their licences, and where they come from.

    scripts/crates.py

Prints each finding, and exits with 1 if there is one. Of each crate that Cargo.lock names, for any target and
with all features, the licence must be one of ALLOWED or offer a choice of these. Crates come from crates.io,
and state which versions they are right with.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from license_expression import ExpressionError, get_spdx_licensing

ROOT = Path(__file__).resolve().parent.parent
# Licences that a user of tcplab takes on, by SPDX identifier.
ALLOWED = frozenset(
    {
        "Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSL-1.0",
        "CC0-1.0",
        "ISC",
        "MIT",
        "MIT-0",
        "Unicode-3.0",
        "Zlib",
    }
)
_LICENSING = get_spdx_licensing()


def findings(metadata: dict[str, Any]) -> Iterator[str]:
    """Faults of the crates that `cargo metadata` lists."""
    for package in metadata["packages"]:
        name = f"{package['name']} {package['version']}"
        if not allowed(package["license"] or ""):
            yield f"{name}: licence {package['license'] or 'not stated'}"
        if package["source"] is None:
            for needed in package["dependencies"]:
                if needed["req"] == "*" and "path" not in needed:
                    yield f"{name}: any version of {needed['name']} would do"
        elif not package["source"].endswith("/crates.io-index"):
            yield f"{name}: comes from {package['source']}"


def allowed(expression: str) -> bool:
    """Whether licences of ALLOWED are enough; the expression is SPDX's, or has a slash for OR."""
    try:
        parsed = _LICENSING.parse(expression.replace("/", " OR "), validate=True)
    except ExpressionError:
        return False
    if parsed is None:
        return False
    true, false = _LICENSING.TRUE, _LICENSING.FALSE
    each = {one: true if one.render() in ALLOWED else false for one in parsed.symbols}
    return bool(parsed.subs(each, simplify=True) == true)


def main() -> int:
    """Check those of this workspace."""
    command = ["cargo", "metadata", "--locked", "--all-features", "--format-version", "1"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    wrong = sorted(findings(json.loads(done.stdout)))
    sys.stdout.writelines(f"{one}\n" for one in wrong)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
