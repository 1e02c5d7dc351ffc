"""Every file in `bad/` is refused with exactly the text beside it.

After a change of wording, `TCPLAB_UPDATE=1 pytest` writes the texts anew; read them in the diff.
"""

import os
from pathlib import Path

import pytest

from tcplab.scenario import ScenarioErrors, load

BAD = Path(__file__).parent / "bad"


@pytest.mark.parametrize("file", sorted(BAD.glob("*.yaml")), ids=lambda file: file.stem)
def test_a_bad_file_is_refused_with_all_its_mistakes(file: Path) -> None:
    with pytest.raises(ScenarioErrors) as refused:
        load(file)
    text = str(refused.value).replace(f"{BAD}{os.sep}", "") + "\n"
    expected = file.with_suffix(".expected")
    if os.environ.get("TCPLAB_UPDATE"):
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8")


def test_there_are_at_least_thirty() -> None:
    assert len(list(BAD.glob("*.yaml"))) >= 30


@pytest.mark.parametrize("file", sorted(BAD.glob("*.yaml")), ids=lambda file: file.stem)
def test_each_mistake_points_into_the_file(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    with pytest.raises(ScenarioErrors) as refused:
        load(file)
    for error in refused.value.errors:
        assert 1 <= error.line <= len(lines) + 1
        assert 1 <= error.column <= len(error.source) + 1
        assert error.source == (lines[error.line - 1] if error.line <= len(lines) else "")
