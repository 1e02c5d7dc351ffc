"""A scenario or study from a stranger names files of this machine; messages do not show what is in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tcplab.scenario import ScenarioErrors, load
from tcplab.study.load import load as load_study

# As /etc/shadow begins, and what else may stand in a file that is not to be read aloud.
SECRETS = [
    "root:$y$j9T$hunter2:19000:0:99999:7:::\n",
    "hunter2\n",
    "77001\n31337\n",
    "\thunter2: {31337: [\n",
]
BYTES = [*(text.encode() for text in SECRETS), b"hunter2\xff31337\n"]


def said(file: Path) -> str:
    with pytest.raises(ScenarioErrors) as refused:
        (load_study if "study" in file.name else load)(file)
    return str(refused.value)


# Without ids of their own the secrets would be in the paths, which messages do show.
@pytest.fixture(params=BYTES, ids=range(len(BYTES)))
def secret(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    (tmp_path / "etc").mkdir()
    file = tmp_path / "etc" / "shadow"
    file.write_bytes(request.param)
    return file


@pytest.mark.parametrize(
    "flows", ["[{name: f, kind: tcp}]", "[{name: f, kind: tcp, cc: ./secret.c}]"], ids=["trace", "control"]
)
@pytest.mark.parametrize("name", ["../etc/shadow", "{}"], ids=["relative", "absolute"])
def test_a_scenario(secret: Path, tmp_path: Path, name: str, flows: str) -> None:
    folder = tmp_path / "stranger"
    folder.mkdir()
    (folder / "secret.c").symlink_to(secret)
    name = name.format(secret)
    file = folder / "scenario.yaml"
    file.write_text(
        f"tcplab: 1\nname: t\nnetwork: {{path: {{trace: {name}, rtt: 10 ms}}}}\nflows: {flows}\n",
        encoding="utf-8",
    )
    text = said(file)
    assert "shadow" in text
    assert not any(part in text for part in ("hunter2", "31337", "77001", "root:", "0xff"))


@pytest.mark.parametrize("name", ["../etc/shadow", "{}"], ids=["relative", "absolute"])
def test_a_study(secret: Path, tmp_path: Path, name: str) -> None:
    file = tmp_path / "stranger" / "study.yaml"
    file.parent.mkdir()
    file.write_text(
        f"tcplab: 1\nstudy: s\nscenario: {name.format(secret)}\ngrid: {{flows.f.cc: [reno, cubic]}}\n",
        encoding="utf-8",
    )
    text = said(file)
    assert "shadow" in text
    assert not any(part in text for part in ("hunter2", "31337", "77001", "root:"))


@pytest.mark.parametrize("missing", ["../etc/shado", "{}/etc/shado"])
def test_what_else_is_in_a_directory_is_not_reported(missing: str, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "shadow").touch()
    file = tmp_path / "stranger" / "scenario.yaml"
    file.parent.mkdir()
    name = missing.format(tmp_path)
    file.write_text(
        f"tcplab: 1\nname: t\nnetwork: {{path: {{trace: {name}, rtt: 10 ms}}}}\n"
        "flows: [{name: f, kind: tcp}]\n",
        encoding="utf-8",
    )
    assert "shadow" not in said(file)
