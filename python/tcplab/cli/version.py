"""Which tcplab this is."""

from __future__ import annotations


def version_text() -> str:
    """The version of the installed package."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return f"tcplab {version('tcplab')}"
    except PackageNotFoundError:
        return "tcplab (run from its source tree, not installed)"
