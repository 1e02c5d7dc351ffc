import errno
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tcplab.results import ResultsError, RunWriter, SchemaError, create_result_dir, load, run_dir_of

PLAN: Any = {
    "name": "tiny",
    "seed": 7,
    "duration": 1_000_000_000,
    "flows": [],
    "links": [],
    "nodes": [],
}
PINGS = pl.DataFrame(
    {"time": [0, 5], "flow": ["p", "p"], "seq": [0, 1], "rtt": [1000, None], "lost": [False, True]}
)


def manifest_of(run_dir: Path) -> Any:
    data: dict[str, Any] = json.loads((run_dir / "manifest.json").read_text())
    return data


def test_a_run_is_marked_interrupted_from_its_first_moment(tmp_path: Path) -> None:
    RunWriter(tmp_path / "run-1", PLAN, engine="sim")
    assert manifest_of(tmp_path / "run-1")["status"] == "interrupted"


def test_a_finished_run_says_how_it_went(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run-1", PLAN, engine="sim", repetition=1)
    writer.finish("done", wall_duration=0.5, warnings=["slow"], facts={"events": 9, "overload": "late"})
    manifest = load(tmp_path).manifest
    assert manifest.status == "done"
    assert manifest.message == ""
    assert manifest.seed == 7
    assert manifest.warnings == ["slow"]
    assert manifest.overload == "late"
    assert manifest.facts == {"events": 9}


def test_an_impossible_status_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="perhaps"):
        RunWriter(tmp_path / "run-1", PLAN).finish("perhaps")


def test_the_manifest_describes_the_machine(tmp_path: Path) -> None:
    host = RunWriter(tmp_path / "run-1", PLAN).manifest.host
    assert host.kernel is not None
    assert host.cores is not None
    assert host.cores >= 1


def test_a_table_comes_back_as_it_was_written(tmp_path: Path) -> None:
    RunWriter(tmp_path / "run-1", PLAN).write_table("pings", PINGS)
    back = load(tmp_path).tables["pings"]
    assert back["rtt"].to_list() == [1000, None]
    assert back["stream"].to_list() == [None, None]
    assert back["repetition"].to_list() == [1, 1]


def test_a_column_that_the_schema_does_not_have_is_refused(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run-1", PLAN)
    with pytest.raises(SchemaError, match="unknown column 'colour'"):
        writer.write_table("pings", PINGS.with_columns(colour=pl.lit("red")))


def test_a_value_of_the_wrong_type_is_refused(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run-1", PLAN)
    with pytest.raises(SchemaError, match="pings"):
        writer.write_table("pings", pl.DataFrame({"time": ["noon"]}))


def test_a_table_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="'pongs'"):
        RunWriter(tmp_path / "run-1", PLAN).write_table("pongs", PINGS)


def test_nothing_is_left_beside_the_files(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "run-1", PLAN)
    writer.write_table("pings", PINGS)
    writer.finish("done")
    names = sorted(path.name for path in (tmp_path / "run-1").iterdir())
    assert names == ["manifest.json", "pings.parquet", "plan.yaml"]


def test_a_full_disk_keeps_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = RunWriter(tmp_path / "run-1", PLAN)
    path = writer.write_table("pings", PINGS)
    before = path.read_bytes()

    def full(self: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ResultsError, match=r"pings\.parquet: the disk is full"):
        writer.write_table("pings", PINGS.head(1))
    assert path.read_bytes() == before
    assert load(tmp_path).status == "interrupted"
    assert not list((tmp_path / "run-1").glob(".*"))


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match="file/here: a part of the path is not a directory"):
        RunWriter(tmp_path / "file" / "here", PLAN)
    with pytest.raises(ResultsError, match="file: is a file, not a directory; give another path"):
        create_result_dir(tmp_path / "file", "tcplab: 1\n")


def test_a_directory_with_results_is_not_overwritten(tmp_path: Path) -> None:
    create_result_dir(tmp_path, "tcplab: 1\n")
    RunWriter(run_dir_of(tmp_path, 1), PLAN)
    with pytest.raises(ResultsError, match="already holds results; give another directory with --output"):
        create_result_dir(tmp_path, "tcplab: 1\n")


@pytest.mark.parametrize("name", ["scenario.yaml", "report.html", "controls"])
def test_files_of_others_are_kept(tmp_path: Path, name: str) -> None:
    """As `tcplab run mine.yaml --output .` beside another scenario.yaml."""
    (tmp_path / name).write_text("theirs")
    with pytest.raises(ResultsError, match=f"already has a file {name}; give another directory"):
        create_result_dir(tmp_path, "ours")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "theirs"


def test_a_directory_is_taken_before_its_run_begins(tmp_path: Path) -> None:
    """Another process may look meanwhile."""
    create_result_dir(tmp_path, "tcplab: 1\n")
    with pytest.raises(ResultsError, match="already holds results"):
        create_result_dir(tmp_path, "tcplab: 1\n")


def test_a_run_is_not_hidden_in_a_studys_directory(tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text("{}")
    with pytest.raises(ResultsError, match="already holds results"):
        create_result_dir(tmp_path, "tcplab: 1\n")


def test_repetitions_share_a_digest_and_other_plans_do_not(tmp_path: Path) -> None:
    first = RunWriter(tmp_path / "a", PLAN).manifest
    second = RunWriter(tmp_path / "b", PLAN | {"seed": 8}).manifest
    other = RunWriter(tmp_path / "c", PLAN | {"duration": 2}).manifest
    assert first.plan_digest == second.plan_digest != other.plan_digest
