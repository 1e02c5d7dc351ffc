"""The drawing: what can be read of it, layouts, alignment, copies."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import Browser, Page, expect

from .conftest import PATIENCE, Served, visited
from .steps import SCENARIO, chart, opened, settled, text_of, write

expect.set_options(timeout=PATIENCE)

TEMPLATES = ("path", "dumbbell", "parking-lot", "star", "tree", "fat-tree", "two-as")
# Faults that make a drawing hard to read: labels upon nodes, upon each other or out of sight, small letters.
PROBLEMS = """() => {
    const labels = [...document.querySelectorAll(".wire-label, .arc-label")];
    const seen = labels.filter((one) => !one.matches(".crowded"));
    const box = (one) => one.getBoundingClientRect();
    const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    const said = (one) => one.innerText.replaceAll("\\n", " ");
    const frame = box(document.querySelector(".drawing"));
    const zoom = new DOMMatrix(getComputedStyle(document.querySelector(".react-flow__viewport")).transform).a;
    const aside = (a) => a.left < frame.left || a.right > frame.right;
    const within = (a) => !aside(a) && a.top >= frame.top && a.bottom <= frame.bottom;
    const nodes = [...document.querySelectorAll(".device")];
    const names = [...document.querySelectorAll(".device .called")];
    const found = [];
    names.forEach((one, index) => {
        // A name is whole, apart from every other, and read.
        if (one.scrollWidth > one.clientWidth + 1) found.push(`${said(one)} is cut`);
        if (!(box(one).height > 0)) found.push(`${said(one)} is not seen`);
        for (const other of names.slice(index + 1)) {
            if (meet(box(one), box(other))) found.push(`${said(one)} meets ${said(other)}`);
        }
        if (parseFloat(getComputedStyle(one).fontSize) * zoom < 8) found.push(`${said(one)} is small`);
    });
    seen.forEach((one, index) => {
        const mine = box(one);
        for (const node of [...nodes, ...names]) {
            if (meet(mine, box(node))) found.push(`${said(one)} is upon ${said(node)}`);
        }
        for (const other of seen.slice(index + 1)) {
            if (meet(mine, box(other))) found.push(`${said(one)} is upon ${said(other)}`);
        }
        if (!within(mine)) found.push(`${said(one)} is out of sight`);
        const size = 11 * mine.height / one.offsetHeight;
        if (size < 10) found.push(`${said(one)} has letters of ${size} px`);
    });
    for (const node of nodes) if (!within(box(node))) found.push(`${said(node)} is out of sight`);
    return found;
}"""


@pytest.mark.parametrize("width", [1280, 1920])
def test_every_template_is_drawn_to_be_read_and_simulates(
    browser: Browser, served: Served, width: int
) -> None:
    page = visited(browser, viewport={"width": width, "height": width * 5 // 8})
    page.goto(served.key)
    for name in TEMPLATES:
        page.get_by_text("New", exact=True).click()
        page.locator(".menu button").filter(has=page.get_by_text(name, exact=True)).click()
        expect(page.locator(".filename")).to_contain_text(name)
        expect(page.locator(".device").first).to_be_visible()
        settled(page)
        assert page.evaluate(f"({PROBLEMS})()") == [], name
        labels = page.locator(".wire-label, .arc-label")
        hidden = page.locator(".wire-label.crowded, .arc-label.crowded")
        assert hidden.count() <= labels.count() / 3, name
        # It has been checked, and may be run.
        expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
        expect(page.locator(".mistakes .error")).to_have_count(0)
        expect(chart(page, "Goodput")).to_be_visible()
    page.context.close()


LONG_NAMES = """tcplab: 1
name: long
network:
  nodes:
    - frankfurt-main-data-centre
    - {name: core-router-with-a-long-name, kind: router}
    - sydney-west-data-centre
  links:
    - {ends: [frankfurt-main-data-centre, core-router-with-a-long-name], rate: 100 Mbit/s, delay: 40 ms}
    - {ends: [core-router-with-a-long-name, sydney-west-data-centre], rate: 100 Mbit/s, delay: 140 ms}
flows:
  - {name: bulk, kind: tcp, cc: cubic, from: frankfurt-main-data-centre, to: sydney-west-data-centre}
duration: 1 s
"""
BEYOND = """() => {
    const { left, right } = document.querySelector(".drawing").getBoundingClientRect();
    const all = [...document.querySelectorAll(".called, .device, .wire-label, .arc-label")];
    const seen = all.filter((one) => !one.classList.contains("crowded"));
    return seen.filter((one) => {
        const box = one.getBoundingClientRect();
        return box.left < left || box.right > right;
    }).map((one) => one.innerText);
}"""


@pytest.mark.parametrize("width", [390, 1280])
def test_a_drawing_that_is_seen_whole_has_its_long_names_in_view(
    page: Page, served: Served, width: int
) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    opened(page, served, LONG_NAMES, nodes=3)
    assert page.evaluate(BEYOND) == []
    page.get_by_role("button", name="Zoom in").click()
    page.get_by_role("button", name="Show everything").click()
    page.wait_for_function(f"() => ({BEYOND})().length === 0")
    page.set_viewport_size({"width": 1280, "height": 800})


def test_the_label_of_an_upright_link_has_the_room_beside_it(page: Page, served: Served) -> None:
    """A drawing that is higher than wide is seen with room on both sides."""
    places = {"a": {"x": 0, "y": 0}, "b": {"x": 0, "y": 200}}
    (served.root / "small.layout.json").write_text(json.dumps({"places": places}))
    page.set_viewport_size({"width": 390, "height": 844})
    link = "{ends: [a, b], rate: 100 Mbit/s, delay: 40 ms, queue: 1000 packets, loss: 0.5 %}"
    flow = "{name: a-flow-with-a-long-name, kind: tcp, cc: cubic, from: a, to: b}"
    network = f"network: {{nodes: [a, b], links: [{link}]}}\nflows: [{flow}]"
    opened(page, served, f"tcplab: 1\nname: small\n{network}\nduration: 1 s\n")
    expect(page.locator(".wire-label:not(.crowded)")).to_contain_text("1000 packets")
    expect(page.locator(".arc-label:not(.crowded)")).to_contain_text("a-flow-with-a-long-name")
    assert page.evaluate(BEYOND) == []
    page.set_viewport_size({"width": 1280, "height": 800})


def test_many_links_that_are_alike_share_a_label_until_there_is_room(page: Page, served: Served) -> None:
    opened(page, served, GENERATED, nodes=36)
    shared = page.locator(".wire-label .alike")
    expect(shared).to_have_text("48 links alike")
    expect(page.locator(".wire-label:not(.crowded)")).to_have_count(1)
    # One that is pointed at says what it is.
    page.get_by_label("Link core1-agg1-1").locator(".react-flow__edge-interaction").dispatch_event(
        "mouseover"
    )
    expect(page.locator("[data-line='link core1-agg1-1']:not(.crowded)")).to_have_count(1)
    # Where they are large enough, each has its own.
    # A zoom that is still going on is not added to: so many clicks are more than enough.
    for _ in range(60):
        if shared.count() == 0:
            break
        page.get_by_role("button", name="Zoom in").click()
    expect(shared).to_have_count(0)


def test_an_empty_canvas_says_what_to_do_first_and_nothing_is_wrong_with_it(
    page: Page, served: Served
) -> None:
    page.goto(served.key)
    expect(page.get_by_role("heading", name="Draw a network")).to_be_visible()
    expect(page.locator(".cm-content")).to_contain_text("nodes: []")
    # A mistake of another kind is one here, too; when it has come and gone, this text has been checked.
    empty = "tcplab: 1\nname: x\nnetwork: {nodes: [], links: []}\nflows: []\nduration: "
    write(page, empty + "1 parsec\n")
    expect(page.locator(".mistakes li")).to_have_count(1)
    expect(page.locator(".mistakes")).to_contain_text("duration")
    write(page, empty + "30 s\n")
    expect(page.get_by_role("heading", name="Draw a network")).to_be_visible()
    expect(page.locator(".mistakes")).to_have_count(0)
    expect(page.locator(".cm-lint-marker")).to_have_count(0)


def test_a_drawing_of_one_node_asks_for_another(page: Page, served: Served) -> None:
    page.goto(served.key)
    expect(page.get_by_role("heading", name="Draw a network")).to_be_visible()
    write(page, "tcplab: 1\nname: x\nnetwork: {nodes: [a], links: []}\nflows: []\nduration: 1 s\n")
    expect(page.locator(".next")).to_have_text("Next: add another node.")
    write(page, "tcplab: 1\nname: x\nnetwork: {nodes: [a, b], links: []}\nflows: []\nduration: 1 s\n")
    expect(page.locator(".next")).to_have_text(
        "Next: drag from the edge of one node to another to link them, or select both and press L."
    )
    # A phone shows all of it.
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.locator(".next").evaluate("(said) => said.scrollWidth <= said.clientWidth")
    page.set_viewport_size({"width": 1280, "height": 800})


GENERATED = """tcplab: 1
name: generated
network:
  topology:
    kind: fat-tree
    k: 4
    core: {rate: 20 Mbit/s, delay: 1 ms}
    edge: {rate: 20 Mbit/s, delay: 1 ms}
flows:
  - {name: bulk, kind: tcp, cc: cubic, from: h1, to: h16}
duration: 1 s
"""


def test_a_generated_network_is_drawn_and_simulated(page: Page, served: Served) -> None:
    opened(page, served, GENERATED, nodes=36)
    expect(page.locator(".next").first).to_contain_text("Made from `topology`")
    settled(page)
    assert page.evaluate(f"({PROBLEMS})()") == []
    expect(chart(page, "Goodput")).to_have_attribute("data-lines", "1")
    # The text names no node: none is deleted, and it stays as it is.
    page.locator("[data-node=core1]").click()
    expect(page.get_by_label("Files and settings")).to_contain_text("network.topology")
    page.keyboard.press("Delete")
    # Nothing is selected any more: the key has been heard.
    expect(page.get_by_label("Files and settings")).not_to_contain_text("network.topology")
    expect(page.locator(".device")).to_have_count(36)
    expect(page.get_by_role("button", name="Undo")).to_be_disabled()
    assert text_of(page).rstrip() == GENERATED.rstrip()


def test_a_click_on_a_label_opens_its_link_or_flow(page: Page, served: Served) -> None:
    opened(page, served)
    page.locator(".wire-label").click()
    settings = page.get_by_label("Files and settings")
    expect(settings.get_by_label("rtt", exact=True)).to_have_value("20 ms")
    page.locator(".arc-label").click()
    expect(settings.get_by_label("Congestion control")).to_have_value("reno")


SQUARE = """tcplab: 1
name: square
network:
  nodes: [a, b, {name: r1, kind: router}, {name: r2, kind: router}]
  links:
    - {ends: [a, r1], rate: 10 Mbit/s, delay: 1 ms}
    - {ends: [r1, r2], rate: 5 Mbit/s, delay: 5 ms}
    - {ends: [r2, b], rate: 10 Mbit/s, delay: 1 ms}
flows:
  - {name: bulk, kind: tcp, cc: cubic, from: a, to: b}
duration: 2 s
"""


def stand(page: Page, axis: str, count: int) -> None:
    """Wait until nodes stand at so many places of an axis, to 4 px."""
    page.wait_for_function(
        """([axis, count]) => {
            const boxes = [...document.querySelectorAll(".device")].map((one) => one.getBoundingClientRect());
            return count === new Set(boxes.map((box) => Math.round(box[axis] / 4))).size;
        }""",
        arg=[axis, count],
    )


def laid_out(page: Page, name: str, rows: int, columns: int) -> None:
    """Choose a layout, and wait until nodes stand in so many rows and columns."""
    page.get_by_label("Arrange automatically").click()
    page.get_by_role("button", name=name).click()
    stand(page, "y", rows)
    stand(page, "x", columns)


def test_layouts_are_made_and_undone(page: Page, served: Served) -> None:
    opened(page, served, SQUARE, nodes=4)
    laid_out(page, "Top to bottom", 4, 1)
    laid_out(page, "Left to right", 1, 4)
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("button", name="Show everything").click()
    stand(page, "x", 1)
    page.keyboard.press("Control+s")
    expect(page.locator(".notice")).to_contain_text("Saved")
    assert (served.root / "small.layout.json").is_file()


def test_nodes_are_aligned_duplicated_and_pasted_elsewhere(page: Page, served: Served) -> None:
    opened(page, served, SQUARE, nodes=4)
    laid_out(page, "Top to bottom", 4, 1)
    laid_out(page, "Left to right", 1, 4)
    # By keys: the view may still be moving to show everything.
    page.locator(".react-flow__node[data-id=r1]").focus()
    page.keyboard.press("Enter")
    expect(page.locator("[data-node=r1].selected")).to_be_visible()
    # Far enough to be seen at any zoom.
    for _ in range(8):
        page.keyboard.press("ArrowDown")
    stand(page, "y", 2)
    page.keyboard.press("Control+a")
    page.get_by_role("button", name="Align").click()
    stand(page, "y", 1)
    page.locator("[data-node=r1]").click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+d")
    # With the links between them, and the flow.
    expect(page.locator(".device")).to_have_count(8)
    expect(page.locator(".wire-label")).to_have_count(6)
    expect(page.locator(".arc-label")).to_have_count(2)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator(".device")).to_have_count(4)
    page.locator("[data-node=r1]").click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+c")
    (served.root / "other.yaml").write_text(SCENARIO)
    page.get_by_role("tab", name="Files").click()
    page.get_by_role("button", name="other", exact=True).click()
    expect(page.locator(".device")).to_have_count(2)
    page.locator(".device").first.click()
    page.keyboard.press("Control+v")
    expect(page.locator(".device")).to_have_count(6)
    expect(page.locator(".wire-label")).to_have_count(4)


@pytest.mark.parametrize(("key", "done"), [("c", "copied"), ("x", "cut")])
def test_what_was_put_on_the_clipboard_is_named(page: Page, served: Served, key: str, done: str) -> None:
    opened(page, served)
    page.locator("[data-node=left]").click()
    page.keyboard.press(f"Control+{key}")
    expect(page.locator(".notice")).to_contain_text(f"One node {done}")


def test_nodes_that_are_not_in_the_text_are_not_copied(page: Page, served: Served) -> None:
    opened(page, served, GENERATED, nodes=36)
    page.locator("[data-node=core1]").click()
    page.keyboard.press("Control+c")
    expect(page.locator(".notice")).to_contain_text("cannot be copied")


def test_a_click_on_the_empty_drawing_lets_its_keys_add_nodes(page: Page, served: Served) -> None:
    page.goto(served.key)
    expect(page.get_by_role("heading", name="Draw a network")).to_be_visible()
    page.locator(".react-flow__pane").click(position={"x": 40, "y": 40})
    for count, key in enumerate("hr", 1):
        page.keyboard.press(key)
        expect(page.locator(".device")).to_have_count(count)
    page.locator(".react-flow__pane").click(position={"x": 40, "y": 40})
    page.keyboard.press("h")
    expect(page.locator(".device")).to_have_count(3)
    # The hint below does not cover the edges from which links are drawn.
    expect(page.locator(".next")).to_contain_text("Next: drag from the edge of one node")
    settled(page)
    hint = page.locator(".next").bounding_box()
    assert hint is not None
    above = "(top) => [...document.querySelectorAll('.react-flow__handle')]"
    above += ".every((one) => one.getBoundingClientRect().bottom < top)"
    page.wait_for_function(above, arg=hint["y"])


def test_what_is_drawn_next_is_said_where_nothing_can_run(page: Page, served: Served) -> None:
    page.goto(served.key)
    run = page.get_by_role("button", name="Run", exact=True)
    expect(run).to_have_attribute("title", "Draw a flow between two hosts first")
    page.get_by_role("button", name="dumbbell").click()
    expect(run).to_have_attribute("title", re.compile("Run and save"))


def test_errors_keep_a_number_with_its_unit(page: Page, served: Served) -> None:
    opened(page, served, SCENARIO.replace("rtt: 20 ms", "rtt: 20 ms, mtu: 20 B"))
    mistakes = page.get_by_label("Errors and warnings")
    expect(mistakes).to_contain_text(re.compile(r"\d\u00a0(B|ms)"))
    assert re.search(r"\d (B|ms|Mbit/s)\b", mistakes.inner_text()) is None


def test_a_click_on_one_of_several_selected_nodes_selects_it_alone(page: Page, served: Served) -> None:
    nodes = "{nodes: [a, {name: r, kind: router}, b], links: []}"
    opened(page, served, f"tcplab: 1\nname: x\nnetwork: {nodes}\nflows: []\nduration: 1 s\n", nodes=3)
    for first, second in (("a", "r"), ("r", "b")):
        page.locator(f"[data-node={first}]").click()
        page.locator(f"[data-node={second}]").click(modifiers=["Shift"])
        page.keyboard.press("l")
    expect(page.locator(".react-flow__edge-link")).to_have_count(2)
    page.locator("[data-node=a]").click()
    expect(page.locator(".inspector h2")).to_contain_text("a")
    page.locator("[data-node=b]").click(modifiers=["Control"])
    page.keyboard.press("f")
    expect(page.locator(".arc-label")).to_have_count(1)
    # A drag moves all that are selected.
    page.locator("[data-node=a]").click()
    page.locator("[data-node=b]").click(modifiers=["Shift"])
    before = page.locator("[data-node=b]").bounding_box()
    box = page.locator("[data-node=a]").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + 60, steps=4)
    page.mouse.up()
    expect(page.locator(".inspector h2")).to_have_text("2 selected")
    assert page.locator("[data-node=b]").bounding_box() != before


def test_engines_have_names_and_the_status_is_red_only_for_errors(page: Page, served: Served) -> None:
    opened(page, served)
    engines = page.get_by_label("Engine").locator("option")
    expect(engines).to_have_text(["Simulator", "Linux kernel", "Real hosts"])
    page.get_by_label("Simulate while editing").uncheck()
    write(page, SCENARIO.replace("10 Mbit/s", "10 parsec"))
    expect(page.locator(".mistakes .error")).to_have_count(1)
    status = page.locator(".lower .status")
    expect(status).to_have_text("Simulate while editing is off.")
    expect(status).not_to_have_class(re.compile("bad"))
