from tcplab.study.grid import AxisValues, Cell, Value, baseline_of, cells, label_of


def axis(name: str, *labels: str) -> AxisValues:
    return AxisValues(name, name, tuple(Value(label, ((f"flows.bulk.{name}", label),)) for label in labels))


CC = axis("cc", "reno", "cubic", "bbr1")
RTT = axis("rtt", "10 ms", "100 ms")


def labels(found: list[Cell]) -> list[dict[str, str]]:
    return [cell.labels for cell in found]


def test_full_is_every_combination_in_the_order_of_the_file() -> None:
    found = cells([CC, RTT], "full", ["sim"])
    assert labels(found)[:3] == [
        {"cc": "reno", "rtt": "10 ms"},
        {"cc": "reno", "rtt": "100 ms"},
        {"cc": "cubic", "rtt": "10 ms"},
    ]
    assert len(found) == 6
    assert found[0].sets == ["flows.bulk.cc=reno", "flows.bulk.rtt=10 ms"]


def test_zip_takes_the_first_with_the_first() -> None:
    found = cells([axis("cc", "reno", "cubic"), RTT], "zip", ["sim"])
    assert labels(found) == [{"cc": "reno", "rtt": "10 ms"}, {"cc": "cubic", "rtt": "100 ms"}]


def test_listed_grids_leave_the_other_axes_alone() -> None:
    found = cells([CC, RTT], [{}, {"cc": ["reno", "bbr1"], "group": "controls"}, {"rtt": "100 ms"}], ["sim"])
    assert labels(found) == [{}, {"cc": "reno"}, {"cc": "bbr1"}, {"rtt": "100 ms"}]
    assert [cell.group for cell in found] == ["", "controls", "controls", ""]


def test_a_cell_listed_twice_is_run_once() -> None:
    assert len(cells([CC], [{"cc": "reno"}, {"cc": ["reno", "cubic"]}], ["sim"])) == 2


def test_several_engines_are_an_axis_of_their_own() -> None:
    found = cells([CC], "full", ["sim", "kernel"])
    assert len(found) == 6
    assert {cell.labels["engine"] for cell in found} == {"sim", "kernel"}


def test_a_study_without_axes_is_the_scenario_as_it_is() -> None:
    (only,) = cells([], "full", ["sim"])
    assert only.labels == {}
    assert only.title == "the unchanged scenario"


def test_ids_are_readable_unique_and_stay_when_values_are_added() -> None:
    few = {cell.id for cell in cells([axis("cc", "reno")], "full", ["sim"])}
    many = [cell.id for cell in cells([CC], "full", ["sim"])]
    assert few < set(many)
    assert len(set(many)) == 3
    assert many[0].startswith("reno-")


def test_ids_tell_apart_labels_that_look_alike_in_a_path() -> None:
    found = cells([axis("loss", "1 %", "1-")], "full", ["sim"])
    assert found[0].id != found[1].id


def test_labels_are_what_a_person_writes() -> None:
    assert label_of({"name": "cubic", "beta": 0.8}) == "cubic beta 0.8"
    assert label_of(True) == "on"
    assert label_of(["a", "b"]) == "a b"


def test_the_baseline_is_the_cell_that_differs_in_its_values_alone() -> None:
    found = cells([CC, RTT], "full", ["sim"])
    base = baseline_of(found[5], found, {"cc": "cubic"})
    assert base is not None
    assert base.labels == {"cc": "cubic", "rtt": "100 ms"}


def test_without_such_a_cell_the_baseline_is_the_one_of_its_values_alone() -> None:
    found = cells([CC, RTT], [{}, {"cc": "reno"}, {"rtt": "100 ms"}], ["sim"])
    assert [baseline_of(cell, found, {}) for cell in found] == [found[0]] * 3
    found = cells([CC, RTT], [{"cc": ["reno", "cubic"]}, {"rtt": "100 ms"}], ["sim"])
    assert [baseline_of(cell, found, {"cc": "cubic"}) for cell in found] == [found[1]] * 3


def test_each_engine_has_a_baseline_of_its_own() -> None:
    found = cells([CC], "full", ["sim", "kernel"])
    reno_on_kernel = next(c for c in found if c.labels == {"cc": "reno", "engine": "kernel"})
    base = baseline_of(reno_on_kernel, found, {"cc": "cubic"})
    assert base is not None
    assert base.labels == {"cc": "cubic", "engine": "kernel"}


def test_a_full_grid_without_baseline_compares_nothing() -> None:
    found = cells([CC, RTT], "full", ["sim"])
    assert all(baseline_of(cell, found, {}) is None for cell in found)
