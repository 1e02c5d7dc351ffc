"""The studies that come with tcplab, by name."""

from __future__ import annotations

from pathlib import Path

from tcplab.scenario import ScenarioErrors
from tcplab.shipped import STUDIES, study_names


def find(source: str) -> Path:
    """The file of a study: a path as it is, or a shipped study's by name; raises ScenarioErrors."""
    path = Path(source)
    if path.is_file():
        return path
    if path.is_dir() and (path / "study.yaml").is_file():
        return path / "study.yaml"
    if source in study_names():
        return STUDIES / source / "study.yaml"
    message = f"no such file or shipped study; the studies are {', '.join(study_names())}"
    raise ScenarioErrors.of_file(source, message)


def called(path: Path | str) -> str:
    """The name under which `find` finds a study's file: a shipped study's name, any other's path."""
    path = Path(path)
    return path.parent.name if path.parent.parent == STUDIES else str(path)


def described() -> list[tuple[str, str]]:
    """Each shipped study with the first sentence of its description."""
    from tcplab.study.load import description_of

    return [(name, description_of(find(name)).split(". ")[0].rstrip(".")) for name in study_names()]
