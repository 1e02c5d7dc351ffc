"""docs/studies.md says what is."""

import re
from pathlib import Path

import pytest

from tcplab.study.load import load
from tcplab.study.reference import replaced

PAGE = Path(__file__).parents[4] / "docs" / "studies.md"
pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="installed without its docs")


def test_the_table_of_metrics_is_the_present_one() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert replaced(text) == text, "run: python -m tcplab.study.reference docs/studies.md"


def test_the_example_is_a_study(tmp_path: Path) -> None:
    found = re.search(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    path = tmp_path / "study.yaml"
    path.write_text(found.group(1), encoding="utf-8")
    study = load(path)
    assert len(study.cells) == 12
    assert len(study.expectations) == 2
