"""The imports of each command: names, not times, so that no verdict rests on the machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCENARIO = ROOT / "scenarios/one-cubic.yaml"
# Each takes 0.05 to 0.6 s to import.
HEAVY = {"duckdb", "jinja2", "matplotlib", "numpy", "plotly", "polars", "rich", "scipy"}
_CODE = """
import atexit, json, sys
path, sys.argv = sys.argv[1], ["tcplab", *sys.argv[2:]]
atexit.register(lambda: open(path, "w").write(json.dumps(sorted(sys.modules))))
from tcplab.cli import main
main()
"""


def imported(where: Path, *arguments: object) -> set[str]:
    """The modules that a command has imported when it ends."""
    names = where / "modules.json"
    subprocess.run(
        [sys.executable, "-c", _CODE, names, *map(str, arguments)], cwd=where, check=True, capture_output=True
    )
    return set(json.loads(names.read_text(encoding="utf-8")))


def rooms(modules: set[str]) -> set[str]:
    """The rooms of the package among them."""
    return {name.split(".")[1] for name in modules if name.startswith("tcplab.")}


def test_the_version_imports_no_library(tmp_path: Path) -> None:
    found = imported(tmp_path, "--version")
    assert found & (HEAVY | {"typer"}) == set()


def test_help_imports_the_command_line_alone(tmp_path: Path) -> None:
    found = imported(tmp_path, "--help")
    assert found & HEAVY == set()
    assert rooms(found) == {"cli", "process", "safe_text"}
    assert rooms(imported(tmp_path, "run", "--help")) <= {"cli", "engine", "process", "safe_text"}


def test_check_imports_no_library_for_numbers_or_drawing(tmp_path: Path) -> None:
    found = imported(tmp_path, "check", SCENARIO)
    assert found & HEAVY == set()
    assert rooms(found) & {"results", "figures", "present", "study", "captures", "progress"} == set()
    # The kernel's controls are asked of a scenario that names one of them alone.
    assert {"tcplab.testbed.controls", "tcplab.testbed.agents", "tcplab.plan.types"} & found == set()


def test_a_run_without_report_imports_what_tables_need(tmp_path: Path) -> None:
    found = imported(
        tmp_path, "run", "--no-report", SCENARIO, "--set", "duration=1 s", "--output", tmp_path / "r"
    )
    assert found & HEAVY == {"numpy", "polars"}
    assert rooms(found) & {"figures", "study", "captures"} == set()


def test_a_quiet_run_does_not_summarize(tmp_path: Path) -> None:
    settings = ("--set", "duration=1 s", "--quiet", "--no-report", "--output", tmp_path / "r")
    found = imported(tmp_path, "run", SCENARIO, *settings)
    assert rooms(found) & {"present", "figures"} == set()
    assert not any(name.startswith("tcplab.analysis.statistics") for name in found)


def test_the_parts_of_the_library_are_attributes() -> None:
    command = "import tcplab; print(tcplab.study.run.__name__, tcplab.captures.read.__name__)"
    ended = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["run", "read"]


INTERRUPTED = """
import sys

class Interrupts:
    @staticmethod
    def find_spec(name, path, target=None):
        if name == sys.argv[1]:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupts)
from tcplab.cli import main
main()
"""


@pytest.mark.parametrize("module", ["tcplab.process", "tcplab.cli.app"])
def test_an_interrupt_while_the_first_modules_are_imported_has_no_traceback(module: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (130, "")
