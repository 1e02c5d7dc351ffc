import errno
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tcplab.results import TABLES, ResultsError, list_results, listing, load
from tcplab.results.manifest import Manifest, read_manifest
from tcplab.results.tests.synthetic import plan, write_result


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = plan({"one": "reno", "two": "cubic"}, shared=True, seconds=5)
    return write_result(tmp_path_factory.mktemp("results") / "result", made, repetitions=2)


def test_a_result_directory_holds_every_repetition(result: Path) -> None:
    run = load(result)
    assert run.repetitions == [1, 2]
    assert run.flows["repetition"].to_list() == [1, 1, 2, 2]
    assert [manifest.seed for manifest in run.manifests.values()] == [1, 2]


def test_one_run_directory_can_be_loaded_by_itself(result: Path) -> None:
    run = load(result / "run-2")
    assert run.repetitions == [2]
    assert run.scenario_text == "tcplab: 1\nname: synthetic\n"


def test_every_table_can_be_asked_for(result: Path) -> None:
    run = load(result)
    for name, columns in TABLES.items():
        assert run.tables[name].columns == ["repetition", *(column.name for column in columns)]
    assert len(run.pings) == 0


def test_the_rows_of_a_repetition_are_a_part_of_the_table(result: Path) -> None:
    run = load(result)
    for repetition in run.repetitions:
        part = run.tables.of(repetition, "intervals")
        assert part.equals(run.intervals.filter(repetition=repetition))
        assert len(part) > 0
    assert run.tables.of(3, "intervals").is_empty()
    assert run.tables.of(1, "pings").is_empty()


def test_a_table_that_does_not_exist_is_named(result: Path) -> None:
    with pytest.raises(KeyError, match="pongs"):
        load(result).tables["pongs"]


def test_the_plan_comes_back_as_it_was_written(result: Path) -> None:
    written: Any = {**plan({"one": "reno", "two": "cubic"}, shared=True, seconds=5), "seed": 1}
    assert load(result).plan == written


def test_a_directory_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="holds no results"):
        load(tmp_path)


def test_a_missing_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="no such directory"):
        load(tmp_path / "nowhere")


def test_a_run_killed_before_its_manifest_is_interrupted(tmp_path: Path) -> None:
    (tmp_path / "run-1").mkdir()
    (tmp_path / "run-1" / "plan.yaml").write_text("name: killed\nflows: []\n")
    run = load(tmp_path)
    assert run.status == "interrupted"
    assert run.name == "killed"


def test_a_damaged_manifest_is_named(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"seed": "many"}')
    with pytest.raises(ResultsError, match=r"manifest\.json: not a manifest: seed"):
        load(tmp_path)


def test_a_damaged_table_is_named(result: Path, tmp_path: Path) -> None:
    copy = write_result(tmp_path / "copy", plan({"one": "reno"}, seconds=2))
    (copy / "run-1" / "flows.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(ResultsError, match=r"flows\.parquet: not a readable table"):
        _ = load(copy).flows


def test_what_a_later_version_has_added_is_left_out(result: Path, tmp_path: Path) -> None:
    copy = write_result(tmp_path / "copy", plan({"one": "reno"}, seconds=2))
    file = copy / "run-1" / "flows.parquet"
    pl.read_parquet(file).with_columns(colour=pl.lit("red")).write_parquet(file)
    assert load(copy).flows.columns == load(result).flows.columns


def test_listing_finds_results_at_any_depth(tmp_path: Path) -> None:
    made = plan({"one": "reno"}, seconds=2)
    write_result(tmp_path / "a" / "b", made, repetitions=2)
    write_result(tmp_path / "c", made)
    (tmp_path / "empty").mkdir()
    found = {listed.path: listed for listed in list_results(tmp_path)}
    assert set(found) == {tmp_path / "a" / "b", tmp_path / "c"}
    assert found[tmp_path / "a" / "b"].repetitions == 2
    assert found[tmp_path / "c"].status == "done"


def test_the_newest_is_first_whatever_the_time_zone(tmp_path: Path) -> None:
    # 0:30, 3:00 and 2:00 of UTC; the last run left no manifest.
    for name, started in (
        ("india", "2026-01-02T06:00:00+05:30"),
        ("york", "2026-01-01T22:00:00-05:00"),
        ("utc", "2026-01-02T02:00:00+00:00"),
        ("none", ""),
    ):
        manifest = write_result(tmp_path / name, plan({"one": "reno"}, seconds=2)) / "run-1" / "manifest.json"
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"started": started}))
    assert [listed.path.name for listed in list_results(tmp_path)] == ["york", "utc", "india", "none"]


def test_a_study_that_has_not_ended_is_interrupted_though_its_runs_are_done(tmp_path: Path) -> None:
    write_result(tmp_path / "cells" / "one", plan({"one": "reno"}, seconds=2))
    (tmp_path / "study.json").write_text('{"study": "small"}')
    assert [(one.name, one.status) for one in list_results(tmp_path)] == [("small", "interrupted")]
    (tmp_path / "results.parquet").write_bytes(b"")
    assert [(one.name, one.status) for one in list_results(tmp_path)] == [("small", "done")]
    assert list_results(tmp_path, studies=False) == []


def test_a_manifest_is_parsed_once_per_change_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_result(tmp_path, plan({"one": "reno"}, seconds=2), repetitions=2)
    parsed: list[Path] = []
    read = read_manifest

    def counted(run_dir: Path) -> Manifest:
        parsed.append(run_dir)
        return read(run_dir)

    monkeypatch.setattr(listing, "read_manifest", counted)
    first = list_results(tmp_path)
    assert list_results(tmp_path) == first
    assert parsed == [tmp_path / "run-1", tmp_path / "run-2"]
    manifest = tmp_path / "run-2" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"done"', '"failed"'))
    assert [one.status for one in list_results(tmp_path)] == ["failed"]
    assert parsed[2:] == [tmp_path / "run-2"]


def test_a_run_without_a_manifest_has_no_engine(tmp_path: Path) -> None:
    write_result(tmp_path, plan({"one": "reno"}, seconds=2), repetitions=2)
    (tmp_path / "run-2" / "manifest.json").unlink()
    (listed,) = list_results(tmp_path)
    assert listed.engine == load(tmp_path).manifests[1].engine


def test_importing_results_and_report_loads_nothing_heavy() -> None:
    code = (
        "import sys, tcplab.results, tcplab.present;"
        "names = {'polars', 'numpy', 'scipy', 'plotly', 'matplotlib', 'jinja2'};"
        "heavy = names & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_result_that_cannot_be_read_is_listed_as_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs the tests may be root, to whom every file is open."""
    for name in ("open", "secret"):
        write_result(tmp_path / name, plan({"one": "reno"}, seconds=3))
    readable = Path.is_file

    def is_file(path: Path) -> bool:
        if "secret" in path.parts:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return readable(path)

    monkeypatch.setattr(Path, "is_file", is_file)
    found = {listed.path.name: (listed.status, listed.message) for listed in list_results(tmp_path)}
    why = f"{tmp_path / 'secret'}: cannot be read: Permission denied"
    assert found == {"open": ("done", ""), "secret": ("damaged", why)}
    with pytest.raises(ResultsError, match="secret: cannot be read: Permission denied"):
        load(tmp_path / "secret")


def test_a_table_that_polars_may_not_read_has_a_reason() -> None:
    """Polars gives no error number."""
    error = ResultsError.unreadable("flows.parquet", PermissionError("Permission denied (os error 13)"))
    assert str(error) == "flows.parquet: cannot be read: Permission denied"


def test_a_run_directory_that_cannot_be_searched_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_result(tmp_path, plan({"one": "reno"}, seconds=3), repetitions=2)
    readable = Path.is_file

    def is_file(path: Path) -> bool:
        if "run-2" in path.parts:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return readable(path)

    monkeypatch.setattr(Path, "is_file", is_file)
    with pytest.raises(ResultsError, match="run-2: cannot be read: Permission denied"):
        load(tmp_path)


def test_a_study_with_a_damaged_run_says_which(tmp_path: Path) -> None:
    write_result(tmp_path / "cells" / "one", plan({"one": "reno"}, seconds=2))
    (tmp_path / "study.json").write_text('{"study": "small"}')
    manifest = tmp_path / "cells" / "one" / "run-1" / "manifest.json"
    manifest.write_text("{")
    (listed,) = list_results(tmp_path)
    assert (listed.kind, listed.status) == ("study", "damaged")
    assert listed.message.startswith(f"{manifest}: not a manifest: ")
    (tmp_path / "study.json").write_text("{")
    (listed,) = list_results(tmp_path)
    assert listed.message.startswith(f"{tmp_path / 'study.json'}: not a study's index: ")


def test_an_error_of_a_result_passes_between_processes() -> None:
    error = ResultsError("run-1/flows.parquet", "the disk is full")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.path, again.reason) == (str(error), error.path, error.reason)


def test_results_that_have_moved_since_they_were_loaded_are_not_empty(tmp_path: Path) -> None:
    run = load(write_result(tmp_path / "run", plan({"one": "reno"}, seconds=1)))
    (tmp_path / "run").rename(tmp_path / "moved")
    for ask in (lambda: run.flows, lambda: run.manifest):
        with pytest.raises(ResultsError, match="run/run-1: no such directory"):
            ask()
