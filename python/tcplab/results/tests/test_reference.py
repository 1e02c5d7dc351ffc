from pathlib import Path

import pytest

from tcplab.results.reference import reference, updated
from tcplab.results.schema import TABLES

PAGE = Path(__file__).parents[4] / "docs" / "results.md"


def test_every_column_is_documented() -> None:
    text = reference()
    for columns in TABLES.values():
        for column in columns:
            assert f"| `{column.name}` | {column.kind} | {column.unit} | {column.doc} |" in text


@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not beside an installed package")
def test_the_documentation_is_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert updated(text) == text, "run: python -m tcplab.results.reference docs/results.md"


def test_a_page_without_a_place_for_it_is_refused() -> None:
    with pytest.raises(ValueError, match="generated from the schema"):
        updated("# Results\n")
