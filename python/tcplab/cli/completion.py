"""Shell completion of arguments: names of shipped scenarios and studies, and files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def scenarios(incomplete: str) -> list[str]:
    """Shipped scenarios, and YAML files and directories, that begin so."""
    from tcplab.shipped import scenario_names

    return _starting_with(incomplete, scenario_names())


def studies(incomplete: str) -> list[str]:
    """Shipped studies, and YAML files and directories, that begin so."""
    from tcplab.shipped import study_names

    return _starting_with(incomplete, study_names())


def _starting_with(incomplete: str, names: Iterable[str]) -> list[str]:
    folder, _, begin = incomplete.rpartition("/")
    where = Path(folder or ("/" if incomplete.startswith("/") else "."))
    lead = f"{folder}/" if "/" in incomplete else ""
    found = [name for name in names if name.startswith(incomplete)]
    try:
        there = sorted(where.iterdir())
    except OSError:
        return found
    for path in there:
        if path.name.startswith(begin) and not path.name.startswith("."):
            if path.is_dir():
                found.append(f"{lead}{path.name}/")
            elif path.suffix in (".yaml", ".yml"):
                found.append(f"{lead}{path.name}")
    return found
