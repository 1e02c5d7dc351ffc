"""A scenario beside itself with remedies, and what is recommended."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tcplab.plan.yaml_text import dump_plan_yaml
from tcplab.scenario import expand
from tcplab.scenario import load as load_scenario
from tcplab.shipped import located
from tcplab.study.api import StudyResults
from tcplab.study.api import run as run_study
from tcplab.study.load import load as load_study
from tcplab.study.remedies import AS_IS, AUTO, AXIS, Remedies, RemedyError, recommendation, study_of
from tcplab.study.store import Done, dataset
from tcplab.study.summary import summary
from tcplab.study.tests.test_execute import STUDY, written
from tcplab.testbed.known_controls import Controls


def scenario(path: Path, rtt: str, **more: object) -> Path:
    """A bulk transfer over a path."""
    file = path / "scenario.yaml"
    data = {
        "tcplab": 1,
        "name": "long",
        "network": {"path": {"rate": "20 Mbit/s", "rtt": rtt, **more}},
        "flows": [{"name": "bulk", "kind": "tcp", "cc": "cubic", "bytes": "20 MB"}],
        "duration": "300 s",
    }
    file.write_text(dump_plan_yaml(data), encoding="utf-8")
    return file


def answered(tmp_path: Path, file: Path, remedies: Remedies) -> StudyResults:
    plan: Any = expand(load_scenario(str(file), [], Controls()))
    study = tmp_path / "study.yaml"
    study.write_text(dump_plan_yaml(study_of(str(file), plan, remedies, 3, 1)), encoding="utf-8")
    return run_study(study, output=tmp_path / "out")


def test_an_accelerator_is_recommended_for_a_long_path_with_loss(tmp_path: Path) -> None:
    file = scenario(tmp_path, "300 ms", loss={"every": "200 packets"})
    found = answered(tmp_path, file, Remedies("left", 4))
    labels = [row.cell.labels["remedy"] for row in found.summary().cells]
    assert labels == [AS_IS, "accelerator", "4 streams", "all together"]
    transferred = found.results.filter(found.results["flow"] == "bulk")["transferred"]
    assert set(transferred) == {20_000_000.0}, "each remedy carries as much"
    said = recommendation(found.summary())
    assert said[0].startswith("As is: ")
    assert said[0].endswith("limited by loss.")
    assert said[-1].startswith("Recommendation: accelerator. As is, loss limits the flow; with it, ")
    # The sender's RTT ends at the accelerator.
    assert "those of the sender's leg" in said[-2]


def test_nothing_is_recommended_where_nothing_arrives(tmp_path: Path) -> None:
    file = scenario(tmp_path, "20 ms", loss="100 %")
    file.write_text(file.read_text().replace("300 s", "2 s"))
    said = recommendation(answered(tmp_path, file, Remedies(streams=4)).summary())
    assert said[1].startswith("With 4 streams: 0 bit/s, limited by")
    assert said[-1] == "Recommendation: no change; no remedy tried gains 10 % or more."


def routed(tmp_path: Path, *routers: str) -> Path:
    """A transfer past routers in a row."""
    file = tmp_path / "routed.yaml"
    names = ["client", *routers, "server"]
    nodes = [name if name in ("client", "server") else {"name": name, "kind": "router"} for name in names]
    links = [{"ends": list(ends), "rate": "20 Mbit/s", "delay": "20 ms"} for ends in pairwise(names)]
    data = {
        "tcplab": 1,
        "name": "routed",
        "network": {"nodes": nodes, "links": links},
        "flows": [{"name": "bulk", "kind": "tcp", "from": "client", "to": "server", "bytes": "1 MB"}],
        "duration": "60 s",
    }
    file.write_text(dump_plan_yaml(data), encoding="utf-8")
    return file


def test_without_a_place_each_router_on_the_way_is_tried(tmp_path: Path) -> None:
    def remedies(file: Path, asked: Remedies) -> list[str]:
        plan = expand(load_scenario(str(file), [], Controls()))
        return list(study_of(str(file), plan, asked, 3, 1)["grid"][AXIS]["values"])

    everywhere = Remedies(accelerator=AUTO)
    assert remedies(scenario(tmp_path, "10 ms"), everywhere) == [AS_IS, "accelerator"]
    assert remedies(routed(tmp_path, "r"), everywhere) == [AS_IS, "accelerator"]
    several = [AS_IS, "accelerator at r", "accelerator at s", "all together"]
    assert remedies(routed(tmp_path, "r", "s"), everywhere) == several
    with pytest.raises(RemedyError, match="flows pass 5 routers: name the one for the accelerator"):
        remedies(routed(tmp_path, *"rstuv"), everywhere)


def test_a_short_clean_path_is_left_as_it_is(tmp_path: Path) -> None:
    found = answered(tmp_path, scenario(tmp_path, "4 ms"), Remedies(accelerator="left"))
    said = recommendation(found.summary())
    assert said[-1] == "Recommendation: no change; no remedy tried gains 10 % or more."


def test_a_gain_that_chance_explains_is_not_denied(tmp_path: Path) -> None:
    """Two runs whose losses differ: twice the goodput, and no proof."""
    file = str(located(Path("distant-server")).resolve())
    plan: Any = expand(load_scenario(file, [], Controls()))
    study = tmp_path / "study.yaml"
    asked = Remedies(accelerator=AUTO)
    study.write_text(dump_plan_yaml(study_of(file, plan, asked, 2, 1)), encoding="utf-8")
    found = run_study(study, output=tmp_path / "out")
    said = recommendation(found.summary())
    assert ": not significant)" in said[1]
    assert said[-1] == "Recommendation: none yet: no gain is significant. `--repeat` makes more runs."


def test_a_remedy_without_a_place_is_refused(tmp_path: Path) -> None:
    plan: Any = expand(load_scenario(str(scenario(tmp_path, "10 ms")), [], Controls()))
    with pytest.raises(RemedyError, match="an accelerator on a path is at `left`"):
        study_of("x", plan, Remedies(accelerator="right"), 1, 1)
    plan["flows"][0]["kind"] = "udp"
    with pytest.raises(RemedyError, match="none is of kind http"):
        study_of("x", plan, Remedies(cache="left"), 1, 1)
    with pytest.raises(RemedyError, match="none is of kind tcp or http"):
        study_of("x", plan, Remedies(streams=2), 1, 1)
    for asked in (AUTO, "left"):
        with pytest.raises(RemedyError, match="none uses TCP"):
            study_of("x", plan, Remedies(accelerator=asked), 1, 1)


def test_a_router_that_no_flow_passes_is_refused(tmp_path: Path) -> None:
    file = routed(tmp_path, "r", "s")
    plan: Any = expand(load_scenario(str(file), [], Controls()))
    plan["nodes"].append({**plan["nodes"][1], "name": "apart"})
    with pytest.raises(RemedyError, match=r"no TCP flow passes 'apart' \(they pass r, s\)"):
        study_of(str(file), plan, Remedies(accelerator="apart"), 1, 1)


def test_a_cache_beside_the_client_is_recommended_for_pages_from_afar(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    pages = {"name": "web", "kind": "http", "from": "left", "to": "right", "sizes": ["50 kB"], "objects": 20}
    data = {
        "tcplab": 1,
        "name": "pages",
        "network": {"path": {"rate": "20 Mbit/s", "rtt": "200 ms"}},
        "flows": [{**pages, "count": 100}],
        "duration": "300 s",
    }
    file.write_text(dump_plan_yaml(data), encoding="utf-8")
    found = answered(tmp_path, file, Remedies("left", None, "left"))
    labels = [row.cell.labels["remedy"] for row in found.summary().cells]
    assert labels == [AS_IS, "accelerator", "cache", "all together"]
    said = recommendation(found.summary())
    assert said[-1].startswith("Recommendation: cache")


def test_an_interval_of_hundreds_is_said_in_full(tmp_path: Path) -> None:
    text = STUDY.replace("flows.bulk.cc: [reno, cubic]", f"{AXIS}: {{values: {{{AS_IS}: {{}}, more: {{}}}}}}")
    text = text.replace("  rtt: {set: network.path.rtt, values: [10 ms, 40 ms]}\n", "")
    study = load_study(written(tmp_path, text.replace("{cc: cubic}", f"{{{AXIS}: {AS_IS}}}")))
    done = [
        Done(cell.id, number, "done", "", None, 1.0, ({"flow": None, "goodput": rate * 1e6},))
        for cell, rates in zip(study.cells, ((400, 460, 520), (999.6, 999.7, 999.6)), strict=True)
        for number, rate in enumerate(rates, start=1)
    ]
    said = recommendation(summary(study, study.cells, dataset(study.cells, done, [AXIS])))
    assert said[0] == "As is: 460 ± 150 Mbit/s."
    assert said[1].startswith("With more: 1000 ± 0.14 Mbit/s, ")
