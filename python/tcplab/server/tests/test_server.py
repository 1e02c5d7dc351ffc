"""The server's answers: files, checks, simulations, runs, results."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import polars as pl
import pytest
from starlette.testclient import TestClient, WebSocketTestSession

import tcplab
from tcplab.figures.runs.timeseries import timeseries
from tcplab.present.echo import echo_part
from tcplab.server.curves import decimate
from tcplab.server.tests.conftest import SCENARIO, SHARED, ended


def decoded(data: bytes) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]]:
    """A frame's header and arrays, as the page reads them."""
    length = int.from_bytes(data[:4], "little")
    header = json.loads(data[4 : 4 + length])
    offset, arrays = 4 + length, []
    for count in header["arrays"]:
        arrays.append(np.frombuffer(data, "<f8", count, offset))
        offset += 8 * count
    assert offset == len(data)
    return header, arrays


@pytest.mark.parametrize(
    "layout",
    [
        {"places": {"left": 5, "right": {"x": 1, "y": 2}}},
        {"places": {"left": {"x": "a", "y": 0}, "right": {"x": 1, "y": 2}}},
        {
            "places": {
                "left": {"x": 1e300, "y": 0},
                "right": {"x": 1, "y": 2},
                "top": {"x": float("nan"), "y": 1},
            }
        },
    ],
)
def test_a_place_where_no_node_can_stand_is_none(
    client: TestClient, root: Path, layout: dict[str, Any]
) -> None:
    (root / "small.layout.json").write_text(json.dumps(layout))
    opened = client.get("/api/file", params={"path": "small.yaml"}).json()
    assert opened["layout"] == {"places": {"right": {"x": 1, "y": 2}}}


def test_a_result_of_any_name_is_downloaded(client: TestClient, root: Path) -> None:
    place = root / "runs" / 'Messung "2" 测试'
    place.mkdir(parents=True)
    (place / "manifest.json").write_text("{}")
    answer = client.get("/api/archive", params={"path": f"runs/{place.name}"})
    assert answer.status_code == 200
    name = answer.headers["content-disposition"].partition("filename*=UTF-8''")[2]
    assert unquote(name) == f"{place.name}.zip"


def test_other_pages_are_notified_of_what_was_saved(client: TestClient) -> None:
    with client.websocket_connect("ws://127.0.0.1:8020/api/live") as other:
        body = {"path": "new.yaml", "text": SCENARIO, "version": None, "layout": None, "page": "me"}
        client.put("/api/file", json=body)
        event = other.receive_json()
        while event["type"] != "saved":
            event = other.receive_json()
        assert (event["path"], event["page"]) == ("new.yaml", "me")


def test_mistakes_have_a_place_and_a_fix(client: TestClient) -> None:
    text = SCENARIO.replace("10 Mbit/s", "10 Mbits")
    (error,) = client.post("/api/check", json={"text": text, "path": "small.yaml"}).json()["errors"]
    assert (error["line"], error["path"]) == (5, "network.path.rate")
    assert "Mbit/s" in error["suggestion"]
    assert client.post("/api/check", json={"text": SCENARIO, "path": "small.yaml"}).json()["ok"]


def test_what_an_engine_cannot_do_has_its_place_in_the_text(client: TestClient) -> None:
    text = SCENARIO.replace("kind: tcp", "kind: tcp, generator: iperf3").replace(
        "duration", "emulator: netem\nduration"
    )
    found = client.post("/api/check", json={"text": text, "path": "small.yaml"}).json()
    lines = text.split("\n")
    places = {
        one["where"]: (one["fatal"], lines[one["line"] - 1][one["column"] - 1 :][: one["width"]])
        for one in found["problems"]
    }
    assert places == {"flows.bulk.generator": (True, "iperf3"), "emulator": (False, "netem")}


def test_a_simulation_while_editing_answers_with_its_curves(client: TestClient, root: Path) -> None:
    before = sorted(root.rglob("*"))
    answer = client.post("/api/preview", json={"text": SCENARIO, "path": "small.yaml"})
    header, arrays = decoded(answer.content)
    expected = tcplab.run(SCENARIO, output=root.parent / "expected")
    shown = {series["panel"]: arrays[2 * index + 1] for index, series in enumerate(header["series"])}
    assert list(shown) == ["goodput", "cwnd", "rtt", "queue"]
    assert np.array_equal(shown["goodput"], expected.intervals["goodput"].to_numpy())
    assert shown["cwnd"].max() == expected.sockets["cwnd"].max()
    drops = sum(sum(mark["counts"]) for mark in header["marks"] if mark["kind"] == "drop")
    assert drops == expected.queues.filter(direction="forward")["drops"].to_numpy().max() > 0
    assert sorted(root.rglob("*")) == before


def test_a_simulation_while_editing_tells_how_far_it_has_come(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However short it is.
    monkeypatch.setattr("tcplab.server.runs._MOMENT", -1.0)
    monkeypatch.setattr("tcplab.server.runs._PERIOD", 0.0)
    with client.websocket_connect("ws://127.0.0.1:8020/api/live") as socket:
        client.post("/api/preview", json={"text": SCENARIO, "path": "small.yaml", "page": "mine"})
        said = next(one for one in iter(socket.receive_json, None) if one["type"] == "preview")
    assert said["page"] == "mine"
    assert 0 <= said["share"] <= 1


def test_a_flow_has_no_goodput_before_it_starts_and_after_it_stops(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Many reports, however fast the simulator is.
    monkeypatch.setattr("tcplab.server.runs._PERIOD", 0.0)
    monkeypatch.setattr("tcplab.engine.sim._STEP", 1)
    late = "  - {name: late, kind: tcp, start: 100 s, duration: 100 s}\n"
    text = SCENARIO.replace("duration: 3 s", late + "duration: 300 s")
    with client.websocket_connect("ws://127.0.0.1:8020/api/live") as socket:
        wanted = {"text": text, "path": "small.yaml", "engine": "sim"}
        job = client.post("/api/runs", json=wanted).json()["id"]
        reports: list[dict[str, Any]] = []
        while not reports or reports[-1]["state"] != "done":
            message = socket.receive_json()
            reports += [message] if message.get("id") == job else []
    assert {100 <= one["time"] <= 200 for one in reports if "late" in one["goodput"]} == {True}


def test_an_older_simulation_that_arrives_late_does_not_end_the_newer(client: TestClient) -> None:
    wanted = {"text": SCENARIO, "path": "small.yaml", "page": "mine"}
    assert client.post("/api/preview", json={**wanted, "order": 2}).status_code == 200
    assert client.post("/api/preview", json={**wanted, "order": 1}).status_code == 204
    assert client.post("/api/preview", json={**wanted, "order": 3}).status_code == 200
    # Another page has its own order.
    assert client.post("/api/preview", json={**wanted, "page": "other", "order": 1}).status_code == 200


def test_zooming_shows_more_of_less(client: TestClient) -> None:
    wanted = {"text": SCENARIO, "path": "small.yaml", "points": 50}
    whole, rough = decoded(client.post("/api/preview", json=wanted).content)
    window = {"run": whole["run"], "from": 1, "to": 1.5, "points": 50, "panels": "cwnd"}
    header, fine = decoded(client.get("/api/curves", params=window).content)
    assert (header["start"], header["end"]) == (1, 1.5)
    inside = (fine[0] >= 1) & (fine[0] < 1.5)
    assert inside.sum() == 50
    cwnd = [s["panel"] for s in whole["series"]].index("cwnd")
    assert len(rough[2 * cwnd]) <= 100


WORKED_OUT = ("jain", "control", "discipline", "classes", "rtt-cdf", "sojourn-cdf", "ssthresh")


def by_panel(data: bytes) -> dict[str, list[tuple[dict[str, Any], Any, Any]]]:
    """The series of each panel: what they are, abscissae, values."""
    header, arrays = decoded(data)
    found: dict[str, list[tuple[dict[str, Any], Any, Any]]] = {}
    for index, about in enumerate(header["series"]):
        found.setdefault(about["panel"], []).append((about, arrays[2 * index], arrays[2 * index + 1]))
    return found


def test_panels_show_what_the_report_works_out(client: TestClient, root: Path) -> None:
    wanted = {"text": SHARED, "path": "small.yaml", "panels": list(WORKED_OUT), "points": 4000}
    shown = by_panel(client.post("/api/preview", json=wanted).content)
    run = tcplab.run(SHARED, output=root.parent / "expected")
    reported = {panel.title: panel for panel in timeseries(run).panels}
    [(about, x, y)] = shown["jain"]
    assert about["link"] == "path"
    [line] = reported["Jain's index"].lines
    assert np.array_equal(x, line.x)
    assert np.array_equal(y, line.y, equal_nan=True)
    assert {(one["group"], one["figure"]) for one, _, _ in shown["control"]} == {
        ("cubic", str(name)) for name in run.gauges["name"].unique()
    }
    assert {(one["figure"], one["unit"]) for one, _, _ in shown["discipline"]} == {
        (str(name), "s" if unit == "ms" else str(unit))
        for name, unit in run.queue_gauges.filter(direction="forward").select("name", "unit").iter_rows()
    }
    assert {one["flow"] for one, _, _ in shown["ssthresh"]} == {"first", "second"}
    assert "classes" not in shown
    means = run.queues.sort("time").select(pl.col("waited", "packets_out").diff().over("link", "direction"))
    waits = means.filter(pl.col("packets_out") > 0).select(pl.col("waited") / pl.col("packets_out"))
    for panel, column in (("rtt-cdf", run.sockets["srtt"]), ("sojourn-cdf", waits["waited"])):
        for about, x, y in shown[panel]:
            assert about["across"] == "s"
            assert (y[0], y[-1]) == (0, 1)
            assert (np.diff(x) >= 0).all()
            assert (np.diff(y) > 0).all()
        largest = max(x[-1] for _, x, _ in shown[panel])
        assert largest == pytest.approx(float(column.max()) / 1e9)  # type: ignore[arg-type]


def test_round_trips_by_size_are_those_of_the_report(client: TestClient, root: Path) -> None:
    flow = "{name: echo, kind: echo, sizes: 1..4096, iterations: 300, clients: 2}"
    text = SCENARIO.replace("{name: bulk, kind: tcp, cc: reno}", flow)
    answer = client.post("/api/preview", json={"text": text, "path": "small.yaml"}).content
    [(about, x, y)] = by_panel(answer)["echo"]
    part = echo_part(tcplab.run(text, output=root.parent / "expected"))
    assert part is not None
    [reported] = [figure.panels[0].lines[0] for _, figure in part.figures if figure.name == "echo-by-size"]
    assert (about["across"], about["unit"], about["log"]) == ("B", "s", True)
    assert np.allclose(x, reported.x)
    assert np.allclose(y * 1e3, reported.y)
    window = {"run": decoded(answer)[0]["run"], "from": 0.1, "to": 0.2}
    [(_, x, same)] = by_panel(client.get("/api/curves", params=window).content)["echo"]
    assert np.array_equal(y, same)


def test_what_is_worked_out_is_that_of_the_window(client: TestClient) -> None:
    wanted = {"text": SHARED, "path": "small.yaml", "panels": ["jain", "rtt-cdf"], "points": 4000}
    answer = client.post("/api/preview", json=wanted).content
    whole, run = by_panel(answer), decoded(answer)[0]["run"]
    window = {"run": run, "from": 2, "to": 3, "panels": "jain,rtt-cdf,control"}
    part = by_panel(client.get("/api/curves", params=window).content)
    # The index is over the second before, of which the window's first samples have to know.
    [(_, x, y)], [(_, all_x, all_y)] = part["jain"], whole["jain"]
    inside, same = (x >= 2) & (x <= 3), (all_x >= 2) & (all_x <= 3)
    assert np.allclose(y[inside], all_y[same])
    assert inside.sum() > 5
    # A distribution is of the window's samples alone.
    for (about, x, _), (_, all_x, _) in zip(part["rtt-cdf"], whole["rtt-cdf"], strict=True):
        assert about["across"] == "s"
        assert all_x[0] < x[0] <= x[-1] <= all_x[-1]
    assert all(x[0] >= 0.7 and x[-1] <= 3.3 for _, x, _ in part["control"])


def test_no_extreme_is_lost_where_points_are_many() -> None:
    x = np.arange(100_000) / 1000
    y = np.zeros(100_000)
    y[[777, 50_123]] = [9, -4]
    times, values = decimate(x, y, 0, 100, 200)
    assert len(values) <= 400
    assert (values.max(), values.min()) == (9, -4)
    assert abs(times[values.argmax()] - 0.777) < 0.5
    assert (np.diff(times) > 0).all()


def test_the_mean_of_a_curve_is_that_of_its_samples(client: TestClient, root: Path) -> None:
    wanted = {"text": SCENARIO, "path": "small.yaml", "points": 50, "panels": ["cwnd"]}
    header, (_, drawn) = decoded(client.post("/api/preview", json=wanted).content)
    samples = tcplab.run(SCENARIO, output=root / "whole").sockets["cwnd"]
    assert len(drawn) < len(samples)
    assert header["series"][0]["mean"] == pytest.approx(samples.mean())


def test_packets_are_paired_from_their_departure_to_their_end(client: TestClient) -> None:
    wanted = {"text": SCENARIO, "path": "small.yaml", "packets": True}
    whole, _ = decoded(client.post("/api/preview", json=wanted).content)
    header, arrays = decoded(
        client.get("/api/packets", params={"run": whole["run"], "from": 0, "to": 3}).content
    )
    starts, ends, ways, flows, flags, sizes = arrays[:6]
    assert header["recorded"]
    assert header["until"] == 3
    flown = flags != 4
    # Every flight takes the link's delay, 10 ms each way; what is dropped does not fly.
    assert np.allclose((ends - starts)[flown], 0.01, atol=1e-9)
    assert (ends == starts)[~flown].all()
    drops = sum(sum(mark["counts"]) for mark in whole["marks"] if mark["kind"] == "drop")
    assert (~flown).sum() == drops
    assert set(ways) == {0, 1}
    assert set(flows) == {0}
    assert sizes.max() == 1514
    assert arrays[7].max() == 20


CHANGING = """tcplab: 1
name: changing
network:
  nodes: [a, b]
  links:
    - ends: [a, b]
      rate: 10 Mbit/s
      delay: 10 ms
      queue: 20 packets
      at: {1 s: {up: off}, 2 s: {up: on, rate: 5 Mbit/s}}
flows:
  - {name: bulk, kind: tcp, cc: reno, from: a, to: b}
duration: 3 s
"""


def test_packets_come_with_the_states_of_their_links(client: TestClient) -> None:
    wanted = {"text": CHANGING, "path": "small.yaml", "packets": True}
    run = decoded(client.post("/api/preview", json=wanted).content)[0]["run"]
    header, _ = decoded(client.get("/api/packets", params={"run": run, "from": 0, "to": 0.1}).content)
    changes = [(one["time"], one["direction"], one["detail"]) for one in header["changes"]]
    assert changes == [
        (1, "forward", "down"),
        (1, "backward", "down"),
        (2, "forward", "up, rate 5 Mbit/s"),
        (2, "backward", "up, rate 5 Mbit/s"),
    ]
    assert {one["link"] for one in header["changes"]} == {0}


def test_a_window_of_packets_begins_with_what_waits_then(client: TestClient) -> None:
    wanted = {"text": SCENARIO, "path": "small.yaml", "packets": True}
    run = decoded(client.post("/api/preview", json=wanted).content)[0]["run"]
    whole, arrays = decoded(client.get("/api/packets", params={"run": run, "from": 0, "to": 3}).content)
    way = next(number for number, queue in enumerate(whole["queues"]) if queue["way"] == 0)
    times, counts = arrays[6 + 2 * way], arrays[7 + 2 * way]
    # Between two events of the queue.
    start = (times[500] + times[501]) / 2
    header, arrays = decoded(
        client.get("/api/packets", params={"run": run, "from": start, "to": start + 0.2}).content
    )
    way = next(number for number, queue in enumerate(header["queues"]) if queue["way"] == 0)
    assert (arrays[6 + 2 * way][0], arrays[7 + 2 * way][0]) == (times[500], counts[500])
    # Bars are drawn to the scale of the whole run, in every window of it.
    assert header["queues"][way]["largest"] == max(counts)


def test_curves_of_a_kept_run_carry_its_engine_and_overload_verdict(client: TestClient, root: Path) -> None:
    tcplab.run(root / "small.yaml", output=root / "runs" / "one")
    asked = {"run": "runs/one"}
    header, _ = decoded(client.get("/api/curves", params=asked).content)
    assert (header["engine"], header["overload"]) == ("sim", None)
    (manifest,) = (root / "runs" / "one").rglob("manifest.json")
    kept = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**kept, "overload": "5 % of departures were late"}))
    assert (
        decoded(client.get("/api/curves", params=asked).content)[0]["overload"]
        == "5 % of departures were late"
    )


def test_a_run_is_kept_and_reported(client: TestClient, root: Path) -> None:
    with client.websocket_connect("ws://127.0.0.1:8020/api/live") as socket:
        text = SCENARIO + "repeat: 2\n"
        job = client.post("/api/runs", json={"text": text, "path": "small.yaml"}).json()
        last = ended(socket, job["id"])
    assert (last["state"], last["repetition"]) == ("done", 2)
    run = tcplab.load(root / last["path"])
    assert run.status == "done"
    assert [m.seed for m in run.manifests.values()] == [1, 2]
    assert run.scenario_text == text
    result = client.get("/api/result", params={"path": last["path"]}).json()
    assert result["status"] == "done"
    flows = result["summary"]["tables"][0]
    assert [heading["label"] for heading in flows["headings"]][:2] == ["Flow", "CC"]
    assert flows["rows"][0][0] == "bulk"
    report = client.get("/api/report", params={"path": last["path"]})
    assert "sandbox" in report.headers["content-security-policy"]
    assert report.text.lstrip().lower().startswith("<!doctype html")
    assert client.get("/api/archive", params={"path": last["path"]}).content[:2] == b"PK"


def test_a_report_that_was_asked_for_before_the_last_run_is_written_again(
    client: TestClient, root: Path
) -> None:
    with client.websocket_connect("ws://127.0.0.1:8020/api/live") as socket:
        job = client.post("/api/runs", json={"text": SCENARIO + "repeat: 2\n", "path": "small.yaml"}).json()
        ended(socket, job["id"])
    place = root / job["path"]
    shutil.move(place / "run-2", root / "kept")
    first = client.get("/api/report", params={"path": job["path"]}).text
    assert client.get("/api/report", params={"path": job["path"]}).text == first
    shutil.move(root / "kept", place / "run-2")
    (place / "run-2" / "manifest.json").touch()
    second = client.get("/api/report", params={"path": job["path"]}).text
    assert second != first
    assert client.get("/api/report", params={"path": job["path"]}).text == second


def test_a_run_that_is_stopped_keeps_what_it_has(client: TestClient, root: Path) -> None:
    text = SCENARIO.replace(
        "duration: 3 s", "duration: 100000 s\nsample: {sockets: off, queues: off, flows: 1 s}"
    )
    with client.websocket_connect("ws://127.0.0.1:8020/api/live") as socket:
        job = client.post("/api/runs", json={"text": text, "path": "small.yaml"}).json()
        while (event := socket.receive_json()).get("time", 0) == 0:
            assert event.get("state") != "failed", event
        assert client.get("/api/result", params={"path": job["path"]}).json()["status"] == "running"
        assert [each["status"] for each in client.get("/api/files").json()["results"]] == ["running"]
        client.post(f"/api/jobs/{job['id']}/stop")
        last = ended(socket, job["id"])
    assert last["state"] == "interrupted"
    assert client.get("/api/result", params={"path": job["path"]}).json()["status"] == "interrupted"
    run = tcplab.load(root / last["path"])
    assert run.status == "interrupted"
    assert run.intervals.height > 0


def test_what_is_too_much_to_simulate_at_every_key_says_what_to_do(client: TestClient) -> None:
    text = SCENARIO.replace("10 Mbit/s", "100 Gbit/s").replace("3 s", "1000 s")
    answer = client.post("/api/preview", json={"text": text, "path": "small.yaml"})
    assert "press Run" in answer.json()["refused"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"run": "none"}, 404),
        ({"run": "preview-99"}, 410),
        ({"run": "small.yaml"}, 404),
        ({"run": ""}, 400),
    ],
)
def test_a_run_that_is_not_there_is_said_to_be(
    client: TestClient, query: dict[str, str], status: int
) -> None:
    assert client.get("/api/curves", params=query).status_code == status


@pytest.mark.parametrize(
    "query",
    [{"from": "x"}, {"from": 2, "to": 1}, {"to": "nan"}, {"points": "many"}, {"panels": "nothing"}],
)
def test_a_window_that_makes_no_sense_is_refused(client: TestClient, query: dict[str, Any]) -> None:
    made = client.post("/api/preview", json={"text": SCENARIO, "path": "small.yaml"})
    run = decoded(made.content)[0]["run"]
    assert client.get("/api/curves", params={"run": run, **query}).status_code == 400


def first_change(client: TestClient, socket: WebSocketTestSession, root: Path) -> dict[str, Any]:
    """The first message about files, once the watch has begun."""
    event: dict[str, Any] = {}
    # The watch begins beside the server: what was written before it had begun is not event.
    while event.get("type") != "files":
        (root / "small.yaml").write_text(SCENARIO + f"# {time.monotonic()}\n")
        time.sleep(0.2)
        # Whatever the watch says, saving says something: the test waits for no message in vain.
        text = f"# {time.monotonic()}\n"
        (root / "tick.yaml").unlink(missing_ok=True)
        client.put("/api/file", json={"path": "tick.yaml", "text": text, "version": None, "layout": None})
        event = socket.receive_json()
    return event


def test_changes_of_another_program_are_reported(client: TestClient, root: Path) -> None:
    with client.websocket_connect("ws://127.0.0.1:8020/api/live") as socket:
        assert set(first_change(client, socket, root)["paths"]) <= {"small.yaml", "tick.yaml"}


def test_pages_are_notified_of_the_end_of_a_run_from_the_command_line(client: TestClient, root: Path) -> None:
    heard: list[str] = []
    with client.websocket_connect("ws://127.0.0.1:8020/api/live") as socket:
        first_change(client, socket, root)
        tcplab.run(root / "small.yaml", output=root / "runs" / "one")
        (root / "last.yaml").write_text(SCENARIO)
        while "last.yaml" not in heard:
            event = socket.receive_json()
            heard.extend(event["paths"] if event.get("type") == "files" else [])
    assert "runs/one/run-1/manifest.json" in heard
