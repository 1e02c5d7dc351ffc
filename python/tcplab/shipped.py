"""The scenarios and studies that come with tcplab, by name, wherever it is installed."""

from __future__ import annotations

from pathlib import Path

# In a source tree both are links to the folders at its root.
SCENARIOS = Path(__file__).parent / "examples"
STUDIES = Path(__file__).parent / "studies"


def scenario_names() -> list[str]:
    """The shipped scenarios."""
    return sorted(path.stem for path in SCENARIOS.glob("*.yaml"))


def study_names() -> list[str]:
    """The shipped studies."""
    return sorted(path.parent.name for path in STUDIES.glob("*/study.yaml"))


def located(path: Path) -> Path:
    """A path as it is, or, where nothing is there, the file of the shipped scenario or study of this name."""
    name = str(path)
    if not path.exists():
        if name in scenario_names():
            return SCENARIOS / f"{name}.yaml"
        if name in study_names():
            return STUDIES / name / "study.yaml"
    return path
