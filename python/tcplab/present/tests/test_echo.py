"""The part of the report about echoes."""

import re
from pathlib import Path

import pytest

import tcplab
from tcplab.analysis.echo import Path as EchoPath
from tcplab.present import compare, write_figures
from tcplab.present.echo import echo_flows, echo_part, way
from tcplab.present.report import comparison_html, report_html
from tcplab.results import Run
from tcplab.scenario import expand, from_data

PATH = {"rate": "100 Mbit/s", "rtt": "0.2 ms", "queue": "1000 packets", "reverse": {"queue": "1000 packets"}}


def echoes(out: Path, clients: tuple[int, ...], **settings: object) -> Run:
    flows = [
        {
            "name": f"by{number}" if clients.index(number) == place else f"by{number}-{place + 1}",
            "kind": "echo",
            "sizes": [1, 1024, 65536],
            "iterations": 30,
            "clients": number,
            "start": f"{10 * place} s",
            **settings,
        }
        for place, number in enumerate(clients)
    ]
    return tcplab.run({"tcplab": 1, "name": "t", "network": {"path": PATH}, "flows": flows}, output=out)


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return echoes(tmp_path_factory.mktemp("several") / "run", (1, 2, 4, 8))


def test_there_is_a_curve_for_each_number_of_clients_and_their_capacity(several: Run) -> None:
    part = echo_part(several)
    assert part is not None
    figures = {figure.name: figure for _, figure in part.figures}
    curves = figures["echo-by-size"].panels[0].lines
    assert [line.key for line in curves] == ["1 client", "2 clients", "4 clients", "8 clients"]
    (largest,) = [line for line in figures["echo-capacity"].panels[0].lines if line.key == "65536 B"]
    assert largest.x.tolist() == [1, 2, 4, 8]
    # From where the link is full it grows with the number of clients.
    assert largest.y[3] / largest.y[2] == pytest.approx(2, rel=0.05)


def test_serialisation_explains_the_slope_of_one_client(several: Run) -> None:
    part = echo_part(several)
    assert part is not None
    one = part.flows[0]
    path = way(several.plan, several.plan["flows"][0])
    small, large = one.echoes.sizes[0], one.echoes.sizes[-1]
    slope = (path.serialisation(65536) or 0) - (path.serialisation(1) or 0)
    assert large.mean - small.mean == pytest.approx(slope, rel=0.05)
    assert {"segment", "serialisation"} <= {step.kind for step in one.steps}


def test_the_page_has_tables_steps_and_figures(several: Run) -> None:
    page = report_html(several)
    text = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    for words in (
        "TCP/1/30",
        "TCP/8/30",
        "Segment boundary",
        "Serialisation",
        "Capacity",
        "First round trips",
    ):
        assert words in text
    assert page.count('id="echo0"') == 1


def test_figures_are_written_as_files(several: Run, tmp_path: Path) -> None:
    names = {path.name for path in write_figures(several, tmp_path, formats=["svg"])}
    assert {"echo-by-size.svg", "echo-capacity.svg", "echo-first.svg", "echo-distributions.svg"} <= names


def test_runs_are_compared_in_one_figure(tmp_path: Path) -> None:
    runs = [echoes(tmp_path / name, (count,)) for name, count in (("one", 1), ("four", 4))]
    page = comparison_html(compare(runs))
    assert "Capacity: round-trip time by number of clients" in page


def test_a_warm_up_is_left_out_only_where_it_is_asked_for(tmp_path: Path) -> None:
    page = report_html(echoes(tmp_path / "run", (2,), warmup=3))
    assert "mean, all" in page
    assert "The first 3 round trips of each size are left" in page


def test_a_run_without_echoes_has_no_such_part(tmp_path: Path) -> None:
    flow = {"name": "bulk", "kind": "tcp", "bytes": "100 kB"}
    done = tcplab.run(
        {"tcplab": 1, "name": "t", "network": {"path": PATH}, "flows": [flow]}, output=tmp_path / "r"
    )
    assert echo_part(done) is None
    assert "<h2>Echoes</h2>" not in report_html(done)


def test_what_a_plan_tells_of_the_way_is_that_of_each_direction_and_of_the_headers(tmp_path: Path) -> None:
    def path_of(left: dict[str, str] | None = None, **flow: object) -> EchoPath:
        path = {"rate": "100 Mbit/s", "rtt": "2 ms", "reverse": {"rate": "10 Mbit/s"}, "left": left or {}}
        flows = [{"name": "e", "kind": "echo", "sizes": [1], **flow}]
        plan = expand(from_data({"tcplab": 1, "name": "t", "network": {"path": path}, "flows": flows}))
        return way(plan, plan["flows"][0])

    plain = path_of()
    assert (plain.rate, plain.rate_back, plain.delay) == (100e6, 10e6, 2e6)
    # Ethernet 14, IPv4 20, TCP 20, timestamps 12; IPv6 40.
    assert (plain.mss, plain.headers) == (1448, 66)
    assert (path_of(ip=6).mss, path_of(ip=6).headers) == (1428, 86)
    without = path_of(left={"timestamps": "off"})
    assert (without.mss, without.headers) == (1460, 54), "one end that has none is enough"
    assert path_of(left={"initial_window": "4 packets"}).initial_window == 4


def test_flows_are_distinguished_by_their_clients_or_else_by_their_names(tmp_path: Path) -> None:
    labels = {
        number: [flow.echoes.label for flow in echo_flows(echoes(tmp_path / str(number), (1, number)))]
        for number in (1, 2)
    }
    assert labels == {1: ["by1, 1 client", "by1-2, 1 client"], 2: ["1 client", "2 clients"]}
