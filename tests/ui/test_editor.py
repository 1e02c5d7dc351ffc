"""Drawing and text as one document: mistakes, menus, topologies of other tools."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tcplab.scenario import expand, load

from .conftest import Served
from .steps import SCENARIO, chart, drag, open_file, opened, reads, settled, write


def test_two_routers_and_two_hosts_are_drawn_and_simulated(page: Page, served: Served) -> None:
    page.goto(served.key)
    expect(page.get_by_role("heading", name="Draw a network")).to_be_visible()
    tools = page.get_by_role("toolbar", name="Draw")
    canvas = page.locator(".react-flow__pane")
    for place, kind in enumerate(("Host", "Router", "Router", "Host")):
        tools.get_by_role("button", name=kind).drag_to(
            canvas, target_position={"x": 70 + 145 * place, "y": 200}
        )
        expect(page.locator(".device")).to_have_count(place + 1)
    for count, (a, b) in enumerate((("h1", "r1"), ("r1", "r2"), ("r2", "h2"))):
        drag(page, a, b)
        expect(page.locator(".wire-label")).to_have_count(count + 1)
    tools.get_by_role("button", name="Flow").click()
    expect(tools.get_by_role("button", name="Flow")).to_have_attribute("aria-pressed", "true")
    drag(page, "h1", "h2")
    expect(page.locator(".arc-label")).to_have_text("flow1 · cubic")
    expect(chart(page, "Congestion window")).to_have_attribute("data-lines", "1")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_label("File name").fill("drawn.yaml")
    page.keyboard.press("Enter")
    expect(page.locator(".notice")).to_contain_text("Saved drawn.yaml")
    plan = expand(load(served.root / "drawn.yaml"))
    assert [(node["name"], node["kind"]) for node in plan["nodes"]] == [
        ("h1", "host"),
        ("r1", "router"),
        ("r2", "router"),
        ("h2", "host"),
    ]
    assert len(plan["links"]) == 3
    assert (served.root / "drawn.layout.json").is_file()
    assert "places" not in (served.root / "drawn.yaml").read_text()


def test_text_and_drawing_are_two_views_of_one_document(page: Page, served: Served) -> None:
    opened(page, served)
    write(page, SCENARIO.replace("queue: 20 packets", "queue: 20 packets, loss: 1 %"))
    expect(page.locator(".wire-label em")).to_have_text("1 % loss")
    # A setting in the panel changes its own characters of the text, and no others.
    page.locator(".arc-label").click()
    page.get_by_label("Congestion control").select_option("cubic")
    expect(page.locator(".arc-label")).to_have_text("bulk · cubic")
    expected = SCENARIO.replace("queue: 20 packets", "queue: 20 packets, loss: 1 %").replace("reno", "cubic")
    reads(page, expected)
    # Both are undone in the order they were made, the drawing's first.
    undo = page.get_by_role("button", name="Undo")
    undo.click()
    expect(page.locator(".arc-label")).to_have_text("bulk · reno")
    undo.click()
    expect(page.locator(".wire-label em")).to_have_count(0)
    reads(page, SCENARIO)


def test_a_path_drawn_on_means_what_it_meant(page: Page, served: Served) -> None:
    opened(page, served, SCENARIO.replace("rtt: 20 ms", "rtt: 25 ms, loss: 1 %, reverse: {rate: 1 Mbit/s}"))
    before = expand(load(served.root / "small.yaml"))
    page.get_by_role("toolbar", name="Draw").get_by_role("button", name="Host").click()
    expect(page.locator(".device")).to_have_count(3)
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.locator(".device")).to_have_count(2)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".notice")).to_contain_text("Saved")
    text = (served.root / "small.yaml").read_text()
    assert "path:" not in text
    assert "# Kept." in text
    after = expand(load(served.root / "small.yaml"))
    assert after["links"] == before["links"]
    assert after["flows"] == before["flows"]


PATHS = (
    "rate: 10 Mbit/s, up: off, at: {1 s: {up: on, rate: 5 Mbit/s, rtt: 50 ms, loss: 1 %}}",
    "rate: 10 Mbit/s, policer: {rate: 5 Mbit/s, burst: 20 kB}, overhead: docsis, mtu: 9000 B",
    "rate: 1 Mbit/s, at: {1 s: {rtt: 50 ms}}, reverse: {rate: 2 Mbit/s, at: {1000 ms: {loss: 1 %}}}",
    "rate: 10 Mbit/s, accelerate: {connections: 10}, left: {initial_window: 4 packets}",
    "rate: unlimited",
)


def test_a_node_beside_a_path_changes_nothing_of_the_path(page: Page, served: Served) -> None:
    """The path is written as nodes and links then, with the same plan."""
    text = SCENARIO.replace("rate: 10 Mbit/s, rtt: 20 ms, queue: 20 packets", "rtt: 20 ms, {}")
    for number, path in enumerate(PATHS):
        (served.root / f"path{number}.yaml").write_text(text.replace("{}", path))
    page.goto(served.key)
    for number, path in enumerate(PATHS):
        file = served.root / f"path{number}.yaml"
        before = expand(load(file))
        page.get_by_role("tab", name="Files").click()
        page.get_by_role("button", name=file.stem, exact=True).click()
        # The drawing of the file before has two devices as well.
        expect(page.get_by_role("banner").get_by_role("button", name=file.name)).to_be_visible()
        settled(page)
        expect(page.locator(".device")).to_have_count(2)
        page.get_by_role("toolbar", name="Draw").get_by_role("button", name="Host").click()
        expect(page.locator("[data-node=h1]")).to_have_count(1)
        page.keyboard.press("Control+s")
        expect(page.locator(".notice")).to_have_text(re.compile(f"Saved {file.name}"))
        # A node without a link is a mistake.
        file.write_text(file.read_text().replace("    - {name: h1}\n", ""))
        after = expand(load(file))
        assert (after["nodes"], after["links"]) == (before["nodes"], before["links"]), path


def test_a_mistake_is_reported_at_its_line_and_on_the_drawing(page: Page, served: Served) -> None:
    opened(page, served)
    expect(chart(page, "Goodput")).to_be_visible()
    write(page, SCENARIO.replace("10 Mbit/s", "10 Mbits"))
    mistakes = page.get_by_label("Errors and warnings")
    expect(mistakes).to_contain_text("line 5")
    expect(page.locator(".wire-label.wrong")).to_be_visible()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    write(page, "network: [")
    expect(mistakes).to_contain_text("not YAML")
    # The drawing stays while the text is broken.
    expect(page.locator(".device")).to_have_count(2)
    write(page, SCENARIO)
    expect(mistakes).to_have_count(0)
    expect(page.locator(".status")).to_contain_text("Simulated 3 s")


def test_what_the_engine_cannot_do_is_reported_at_its_line_and_on_the_drawing(
    page: Page, served: Served
) -> None:
    opened(page, served)
    write(page, SCENARIO.replace("kind: tcp", "kind: tcp, generator: iperf3"))
    problem = page.get_by_label("Errors and warnings").get_by_role("button")
    expect(problem).to_contain_text("line 7 flows.bulk.generator: iperf3 is a program")
    expect(problem).to_contain_text("Fix: leave `generator` out")
    expect(page.locator(".cm-lintRange-error")).to_have_text("iperf3")
    expect(page.locator(".arc-label.wrong")).to_be_visible()
    problem.click()
    expect(page.locator(".cm-activeLine")).to_contain_text("generator: iperf3")


def test_a_menu_is_closed_by_escape_by_a_choice_and_by_a_press_elsewhere(page: Page, served: Served) -> None:
    opened(page, served)
    menu = page.locator(".menu")
    for name, opener in (
        ("New", page.get_by_role("button", name="New", exact=True)),
        ("Share", page.get_by_role("button", name="Share", exact=True)),
        ("Panels", page.get_by_role("button", name="Panels", exact=True)),
        ("layouts", page.get_by_role("button", name="Arrange automatically", exact=True)),
    ):
        opener.click()
        expect(menu, name).to_have_count(1)
        # All of it is within the window.
        box, size = menu.bounding_box(), page.viewport_size
        assert box is not None
        assert size is not None
        assert box["x"] >= 0 <= box["y"], name
        assert box["x"] + box["width"] <= size["width"], name
        assert box["y"] + box["height"] <= size["height"], name
        page.keyboard.press("Escape")
        expect(menu, name).to_have_count(0)
        expect(opener).to_be_focused()
        opener.click()
        page.locator(".react-flow__pane").click(position={"x": 10, "y": 10})
        expect(menu, name).to_have_count(0)
    page.get_by_role("button", name="New", exact=True).click()
    menu.get_by_text("dumbbell").click()
    expect(menu).to_have_count(0)


MINIEDIT = """{"version": "2", "application": {"startCLI": "0"}, "controllers": [],
"hosts": [{"number": "1", "x": "100", "y": "100", "opts": {"hostname": "h1", "nodeNum": 1}},
          {"number": "2", "x": "500", "y": "100", "opts": {"hostname": "h2", "nodeNum": 2}}],
"switches": [{"number": "1", "x": "300", "y": "100", "opts": {"hostname": "s1", "nodeNum": 1}}],
"links": [{"src": "h1", "dest": "s1", "opts": {"bw": 10, "delay": "5ms"}},
          {"src": "s1", "dest": "h2", "opts": {}}]}"""
CONTAINERLAB = """name: pair
topology:
  nodes: {a: {kind: linux}, b: {kind: linux}}
  links: [{endpoints: ["a:eth1", "b:eth1"]}]
# containerlab tools netem set -n clab-pair-a -i eth1 --delay 5ms
"""


@pytest.mark.refused("/api/import")
def test_topologies_of_other_tools_are_opened(page: Page, served: Served) -> None:
    page.goto(served.key)
    for name, text, nodes in (("old.mn", MINIEDIT, 3), ("pair.clab.yml", CONTAINERLAB, 2)):
        open_file(page, name, text)
        expect(page.locator(".device")).to_have_count(nodes)
        expect(page.locator(".arc-label")).to_contain_text("probe")
    open_file(page, "bare.mn", MINIEDIT.replace("5ms", "5"))
    expect(page.locator(".notice")).to_contain_text("bare.mn: link h1-s1: delay 5 has no unit")
    page.get_by_role("button", name="Dismiss").click()
    open_file(page, "pair.clab.yml", CONTAINERLAB)
    expect(page.locator(".device")).to_have_count(2)
    open_file(page, "broken.mn", "not MiniEdit's")
    expect(page.locator(".notice")).to_contain_text("broken.mn")
    # The drawing stayed.
    expect(page.locator(".device")).to_have_count(2)


DROP = """(element, [name, text]) => {
    const data = new DataTransfer();
    data.items.add(new File([text], name));
    const sent = (type) => new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true});
    return ["dragover", "drop"].map((type) => element.dispatchEvent(sent(type)));
}"""


@pytest.mark.parametrize("place", [".topbar", ".canvas"])
def test_a_file_dropped_anywhere_is_opened(page: Page, served: Served, place: str) -> None:
    opened(page, served)
    goes_on = page.locator(place).first.evaluate(DROP, ["pair.clab.yml", CONTAINERLAB])
    assert goes_on == [False, False], "the browser leaves the page for the file"
    expect(page.locator(".arc-label")).to_contain_text("probe")
