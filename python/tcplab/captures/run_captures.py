"""The captures of a run directory."""

from __future__ import annotations

from pathlib import Path

SUFFIXES = (".pcapng", ".pcap", ".pcapng.gz", ".pcap.gz", ".pcapng.zst", ".pcap.zst", ".cap")


def captures_in(directory: Path) -> list[Path]:
    """Captures of a directory, or of the repetitions below a result directory."""
    found = [path for path in sorted(directory.iterdir()) if path.is_file() and path.name.endswith(SUFFIXES)]
    if found:
        return found
    return [
        path
        for run in sorted(directory.glob("run-*"), key=lambda run: (len(run.name), run.name))
        if run.is_dir()
        for path in captures_in(run)
    ]
