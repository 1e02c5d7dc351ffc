"""Who cannot use a mouse or see the page: keys reach everything, and axe-core finds nothing against it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

import tcplab

from .conftest import PATIENCE, Served, visited
from .steps import SCENARIO, chart, opened, reads, simulated, write

expect.set_options(timeout=PATIENCE)

Theme = Literal["light", "dark"]
AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"


def complaints(page: Page) -> list[str]:
    """The violations that axe-core finds in the page: WCAG 2.1 A and AA, and its best practices."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    # Elements that fade in are checked once they are there; a cursor blinks for ever.
    page.wait_for_function(
        "() => !document.getAnimations().some((one) => one.effect.getTiming().iterations === 1)"
    )
    found: Any = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {one['help']}: {json.dumps(node['target'])} {node['failureSummary']}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_against_the_page(browser: Browser, served: Served, theme: Theme) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: make ui")
    page = visited(browser, viewport={"width": 1280, "height": 800}, color_scheme=theme)
    page.goto(served.address)
    expect(page.get_by_role("heading", name="tcplab")).to_be_visible()
    assert complaints(page) == []
    page.goto(served.key)
    expect(page.get_by_role("heading", name="Draw a network")).to_be_visible()
    assert complaints(page) == []
    opened(page, served)
    expect(chart(page, "Goodput")).to_be_visible()
    page.locator(".arc-label").click()
    expect(page.get_by_label("Congestion control")).to_be_visible()
    assert complaints(page) == []
    page.get_by_role("tab", name="Packets").click()
    expect(page.get_by_label("Time of the run")).to_be_visible()
    assert complaints(page) == []
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".chip.run")).to_have_count(1)
    page.get_by_role("tab", name="Files").click()
    page.locator(".result .item").first.click()
    expect(page.get_by_label("Summary")).to_contain_text("bulk")
    assert complaints(page) == []
    write(page, "tcplab: 2")
    expect(page.get_by_label("Errors and warnings")).to_be_visible()
    assert complaints(page) == []
    page.context.close()


def test_the_first_frame_has_its_landmarks_before_any_script_is_read(
    browser: Browser, served: Served
) -> None:
    page = visited(browser, java_script_enabled=False)
    page.goto(served.address)
    expect(page.get_by_role("banner")).to_contain_text("tcplab")
    expect(page.get_by_role("main", name="tcplab is starting")).to_be_attached()
    page.context.close()


def test_a_network_is_drawn_and_simulated_by_keys_alone(page: Page, served: Served) -> None:
    page.goto(served.key)
    expect(page.get_by_role("heading", name="Draw a network")).to_be_visible()
    tools = page.get_by_role("toolbar", name="Draw")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Skip to the drawing")).to_be_focused()
    page.keyboard.press("Enter")
    expect(tools.get_by_role("button", name="Host")).to_be_focused()
    for count in (1, 2):
        page.keyboard.press("Enter")
        expect(page.locator(".device")).to_have_count(count)
    expect(tools.get_by_role("button", name="Host")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.press("l")
    expect(page.locator(".wire-label")).to_have_count(1)
    page.keyboard.press("Control+a")
    page.keyboard.press("f")
    expect(page.locator(".arc-label")).to_have_text("flow1 · cubic")
    expect(chart(page, "Congestion window")).to_have_attribute("data-lines", "1")
    # Two of three nodes.
    page.keyboard.press("r")
    expect(page.locator(".device")).to_have_count(3)
    reach(page, "host h2")
    page.keyboard.press("Enter")
    reach(page, "router r1")
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("l")
    expect(page.locator(".wire-label")).to_have_count(2)
    # One of the two alone, then neither: the focus stays.
    page.keyboard.press("Enter")
    expect(page.locator(".device.selected")).to_have_count(1)
    page.keyboard.press("Shift+Enter")
    expect(page.locator(".device.selected")).to_have_count(0)
    expect(page.locator("[data-id=r1]")).to_be_focused()
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+z")
    # Settings of a link.
    reach(page, "Link h1-h2")
    page.keyboard.press("Enter")
    reach(page, "rate", "Shift+Tab")
    page.keyboard.press("Control+a")
    page.keyboard.type("2 Mbit/s")
    page.keyboard.press("Enter")
    expect(page.locator(".wire-label")).to_contain_text("2 Mbit/s")
    # A run that is kept, its curves, its packets.
    reach(page, "Run", "Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".chip.run")).to_have_count(1)
    reach(page, "Panels")
    page.keyboard.press("Enter")
    reach(page, "In flight")
    page.keyboard.press("Space")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Panels")).to_be_focused()
    expect(chart(page, "In flight")).to_be_visible()
    reach(page, "Packets", "Shift+Tab")
    page.keyboard.press("Enter")
    reach(page, "Time of the run")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".clock")).not_to_have_attribute("data-time", "0")
    # Its tables.
    reach(page, "Files", "Shift+Tab")
    page.keyboard.press("Enter")
    reach(page, "untitled", "Tab", within=".result")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Summary")).to_contain_text("flow1")


def test_a_study_is_made_and_its_cell_opened_by_keys_alone(page: Page, served: Served) -> None:
    (served.root / "grid.yaml").write_text(
        "tcplab: 1\nstudy: grid\nscenario: small.yaml\ngrid: {flows.bulk.cc: [reno, cubic]}\n"
    )
    opened(page, served)
    reach(page, "Run the study grid.yaml")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Download report")).to_be_visible()
    reach(page, "Open runs")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Summary")).to_contain_text("bulk")


def test_tab_goes_through_the_text_unless_someone_edits_it(page: Page, served: Served) -> None:
    opened(page, served)
    reach(page, "Scenario as YAML")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Height of the curves")).to_be_focused()
    reads(page, SCENARIO)
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Control+Home")
    page.keyboard.type("#")
    page.keyboard.press("Tab")
    expect(page.locator(".cm-line").first).to_have_text(re.compile("^  #+"))
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Height of the curves")).to_be_focused()


NAME = """(within) => {
    const one = document.activeElement;
    if (within && !one.closest(within)) return "";
    return one.getAttribute("aria-label") ?? (one.labels?.length ? one.labels[0] : one).innerText.trim();
}"""


def reach(page: Page, name: str, key: str = "Tab", within: str = "") -> None:
    """Press Tab, or Tab with Shift, until the focus is on what has this name, and is seen."""
    passed = []
    for _ in range(90):
        page.keyboard.press(key)
        passed.append(page.evaluate(NAME, within).split("\n")[0])
        if passed[-1].split(":")[0] == name:
            assert page.evaluate("document.activeElement.matches(':focus-visible')")
            return
    raise AssertionError(f"{key} does not reach {name}, but {passed}")


def test_curves_are_zoomed_and_moved_by_keys(page: Page, served: Served) -> None:
    opened(page, served)
    simulated(page)
    chart(page, "Goodput").focus()
    windows = []
    for key in ("+", "ArrowRight", "-"):
        with page.expect_response(lambda answer: "/api/curves" in answer.url) as answer:
            page.keyboard.press(key)
        asked = parse_qs(urlsplit(answer.value.url).query)
        windows.append([float(asked[end][0]) for end in ("from", "to") if end in asked])
    assert windows == [[0.75, 2.25], [1.125, 2.625], []]
    page.keyboard.press("+")
    expect(page.get_by_role("button", name="Whole run")).to_be_visible()
    page.keyboard.press("0")
    expect(page.get_by_role("button", name="Whole run")).to_have_count(0)


def test_forced_colours_keep_those_that_mean_something(page: Page, served: Served) -> None:
    opened(page, served)
    simulated(page)
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    look = "element => getComputedStyle(element).backgroundColor"
    swatch = page.locator(".chip .swatch")
    before = swatch.evaluate(look)
    page.emulate_media(forced_colors="active")
    assert swatch.evaluate(look) == before
    # Whichever tool is chosen is filled.
    link, flow = (page.get_by_role("button", name=name, exact=True) for name in ("Link", "Flow"))
    assert link.evaluate(look) != flow.evaluate(look)
    page.emulate_media(forced_colors="none")


@pytest.mark.parametrize(("width", "height"), [(360, 740), (640, 400)])
def test_a_small_window_has_room_for_the_drawing_the_text_and_the_curves(
    page: Page, served: Served, width: int, height: int
) -> None:
    page.set_viewport_size({"width": width, "height": height})
    opened(page, served)
    simulated(page)
    for part in (".drawing", ".editor", ".lower"):
        page.locator(part).scroll_into_view_if_needed()
        box = page.locator(part).bounding_box()
        assert box is not None, part
        assert box["x"] >= 0, part
        assert width - 2 <= box["width"] <= width, part
        assert box["height"] > 150, part
    page.set_viewport_size({"width": 1280, "height": 800})


def report_of(page: Page, served: Served, name: str, scenario: str) -> Page:
    """The report, in a page of its own, of a run called `name` that is made before."""
    file = served.root / "small.yaml"
    file.write_text(scenario)
    tcplab.run(file, output=served.root / "runs" / name)
    page.goto(served.key)
    page.get_by_role("button", name=re.compile(f"^done {name}")).click()
    with page.expect_popup() as opening:
        page.get_by_role("link", name="Open report").click()
    return opening.value


def test_a_report_with_long_names_fits_a_narrow_window(page: Page, served: Served) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    scenario = SCENARIO.replace("name: small", f"name: {'long' * 12}")
    report = report_of(page, served, "long-" * 12, scenario)
    expect(report.get_by_role("heading", name="The data")).to_be_visible()
    axes = report.locator(".figure .nsewdrag").first
    expect(axes).to_be_attached()
    report.set_viewport_size({"width": 360, "height": 740})
    report.wait_for_function("document.documentElement.scrollWidth <= 360")
    # The names of levels leave room for the curves.
    report.wait_for_function("axes => axes.getBoundingClientRect().width > 180", arg=axes.element_handle())
    page.set_viewport_size({"width": 1280, "height": 800})


def test_a_long_name_in_a_report_s_table_breaks_only_where_it_must(page: Page, served: Served) -> None:
    scenario = SCENARIO.replace("name: bulk", "name: backup-of-the-branch-office")
    report = report_of(page, served, "names", scenario)
    report.set_viewport_size({"width": 390, "height": 844})
    cells = report.get_by_role("cell", name="backup-of-the-branch-office", exact=True)
    expect(cells.first).to_be_attached()
    lines = """cell => {
        const range = document.createRange();
        range.selectNodeContents(cell.firstElementChild ?? cell);
        return new Set([...range.getClientRects()].map(({ bottom }) => Math.round(bottom))).size;
    }"""
    assert cells.evaluate_all(f"all => all.map({lines})") == [1] * cells.count()
    report.wait_for_function("document.documentElement.scrollWidth <= 390")


def test_panels_side_by_side_stand_below_each_other_in_a_narrow_window(page: Page, served: Served) -> None:
    report = report_of(page, served, "narrow", SCENARIO)
    beside = """() => {
        const all = document.querySelectorAll("[data-figure=distributions-0] .nsewdrag");
        const [one, other] = [...all].map((panel) => panel.getBoundingClientRect());
        return other && one.right < other.left;
    }"""
    report.set_viewport_size({"width": 1280, "height": 800})
    report.wait_for_function(beside)
    report.set_viewport_size({"width": 390, "height": 844})
    report.wait_for_function(f"() => !({beside})()")
    boxes = [
        panel.bounding_box() for panel in report.locator("[data-figure=distributions-0] .nsewdrag").all()
    ]
    assert len(boxes) == 2
    assert all(box is not None and box["width"] > 240 for box in boxes), boxes


def test_a_narrow_window_shows_all_without_scrolling_sideways(page: Page, served: Served) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    opened(page, served)
    simulated(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    for name in ("Run", "Undo", "Panels"):
        box = page.get_by_role("button", name=name, exact=True).bounding_box()
        assert box is not None, name
        assert box["x"] + box["width"] <= 400, name
    page.set_viewport_size({"width": 1280, "height": 800})


def a_result_on_a_phone(page: Page, served: Served) -> None:
    """Make a result and open it in a window of 390 by 844 pixels."""
    scenario = served.root / "small.yaml"
    scenario.write_text(SCENARIO)
    tcplab.run(scenario, output=served.root / "runs" / "mine")
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, served)
    page.locator(".result .item").first.click()


def test_a_phone_shows_the_controls_of_packets_and_the_result_that_is_opened(
    page: Page, served: Served
) -> None:
    a_result_on_a_phone(page, served)
    expect(page.get_by_role("table", name="Flows, steady state")).to_be_in_viewport()
    page.get_by_role("tab", name="Packets").click()
    expect(page.get_by_role("button", name="Play")).to_be_enabled()
    for part in (".time", ".clock", ".playback select >> nth=0", ".playback .keys"):
        box = page.locator(part).bounding_box()
        assert box is not None, part
        assert box["x"] + box["width"] <= 390, part
    expect(chart(page, "Goodput")).to_be_visible()
    plot = chart(page, "Goodput").locator(".plot").bounding_box()
    assert plot is not None
    assert plot["height"] > 90
    page.set_viewport_size({"width": 1280, "height": 800})


def test_notes_of_a_result_are_as_wide_as_a_phone(page: Page, served: Served) -> None:
    a_result_on_a_phone(page, served)
    note = page.locator(".summary > p").first
    expect(note).to_contain_text("Steady state")
    box = note.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 390
    page.set_viewport_size({"width": 1280, "height": 800})


def test_an_empty_canvas_shows_its_templates_in_a_small_window(page: Page, served: Served) -> None:
    page.set_viewport_size({"width": 800, "height": 600})
    page.goto(served.key)
    expect(page.get_by_role("heading", name="Draw a network")).to_be_in_viewport(ratio=1)
    canvas, last = (page.locator(part).last.bounding_box() for part in (".drawing", ".starts button"))
    top = page.get_by_role("heading", name="Draw a network").bounding_box()
    assert canvas is not None
    assert last is not None
    assert top is not None
    assert canvas["y"] <= top["y"]
    assert last["y"] + last["height"] <= canvas["y"] + canvas["height"]
    page.set_viewport_size({"width": 1280, "height": 800})


@pytest.mark.refused("/api/")
def test_a_phone_shows_the_curves_of_what_is_run(page: Page, served: Served) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, served)
    simulated(page)
    expect(chart(page, "Goodput")).not_to_be_in_viewport()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(chart(page, "Goodput")).to_be_in_viewport()
    expect(page.locator(".chip.run")).to_have_count(1)
    # A message about a run that failed is not over the result that says the same.
    real = SCENARIO.replace("network:", "network:\n  hosts_at: {left: 'ssh://[::1]:1', right: 'local:'}")
    write(page, real)
    page.get_by_label("Engine").select_option("remote")
    expect(page.get_by_role("list", name="Errors and warnings")).to_contain_text("the path between the hosts")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".notice.bad")).to_contain_text("small failed")
    page.get_by_role("tab", name="Files").click()
    page.locator(".result .item", has=page.locator(".state.failed")).click()
    expect(page.locator(".result-view")).to_contain_text("failed")
    expect(page.locator(".notice.bad")).to_have_count(0)
    page.set_viewport_size({"width": 1280, "height": 800})


def test_a_narrow_window_shows_all_of_a_result_and_of_a_study(page: Page, served: Served) -> None:
    (served.root / "grid.yaml").write_text(
        "tcplab: 1\nstudy: grid\nscenario: small.yaml\ngrid: {flows.bulk.cc: [reno, cubic]}\n"
    )
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, served)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".chip.run")).to_have_count(1)
    page.get_by_role("tab", name="Files").click()
    page.locator(".result .item").first.click()
    expect(page.get_by_label("Summary")).to_contain_text("bulk")
    for part in (".drawing", ".editor", ".lower"):
        box = page.locator(part).bounding_box()
        assert box is not None, part
        assert box["x"] + box["width"] <= 390, part
    page.get_by_role("button", name="Run the study grid.yaml").click()
    expect(page.get_by_role("link", name="Download report")).to_be_visible()
    # Its plot is narrower, and its text as large as elsewhere.
    expect(page.locator(".trade-off svg")).to_be_visible()
    page.wait_for_function("document.querySelector('.trade-off svg').getBoundingClientRect().right <= 390")
    assert page.locator(".trade-off svg").evaluate("svg => svg.getScreenCTM().a") == 1
    page.set_viewport_size({"width": 1280, "height": 800})


def test_a_panel_without_curves_says_why_to_those_who_hear_it(page: Page, served: Served) -> None:
    opened(page, served)
    simulated(page)
    page.get_by_role("button", name="Panels").click()
    page.get_by_label("Queue discipline state").check()
    page.keyboard.press("Escape")
    empty = chart(page, "Queue discipline state")
    expect(empty).to_have_attribute(
        "aria-label", re.compile("^Queue discipline state: The queue disciplines")
    )


def test_a_panel_whose_table_is_not_sampled_says_so(page: Page, served: Served) -> None:
    opened(page, served, SCENARIO + "sample: {sockets: off}\n")
    simulated(page)
    expect(chart(page, "Congestion window")).to_contain_text(
        "The scenario samples no sockets (sample: {sockets: off})."
    )


@pytest.mark.parametrize(("width", "height"), [(1366, 768), (1280, 800)])
def test_the_tools_of_a_laptop_are_in_one_row(page: Page, served: Served, width: int, height: int) -> None:
    page.set_viewport_size({"width": width, "height": height})
    opened(page, served)
    assert len(rows(page, ".tools > *")) == 1
    page.set_viewport_size({"width": 1280, "height": 800})


@pytest.mark.parametrize("width", [1366, 390])
def test_a_menu_of_the_tools_is_shown_whole(page: Page, served: Served, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    opened(page, served)
    page.get_by_role("button", name="Arrange automatically", exact=True).click()
    menu, canvas = (page.locator(place).bounding_box() for place in (".layouts .menu", ".canvas"))
    assert menu is not None
    assert canvas is not None
    assert canvas["x"] <= menu["x"]
    assert menu["x"] + menu["width"] <= canvas["x"] + canvas["width"]
    page.set_viewport_size({"width": 1280, "height": 800})


@pytest.mark.parametrize(("width", "count"), [(390, 2), (360, 2), (768, 1)])
def test_the_bar_above_takes_two_rows_of_a_phone_and_one_of_a_tablet(
    page: Page, served: Served, width: int, count: int
) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    opened(page, served)
    assert len(rows(page, ".topbar > *")) == count
    name = page.get_by_role("button", name=re.compile(r"^small\.yaml")).bounding_box()
    assert name is not None
    assert name["width"] >= 70
    expect(page.get_by_label("Simulate while editing")).to_be_checked()
    page.set_viewport_size({"width": 1280, "height": 800})


def rows(page: Page, parts: str) -> set[int]:
    """The rows that these parts are in: parts of a row have the same middle."""
    middles = "parts => parts.map(part => part.getBoundingClientRect()).filter(box => box.width)"
    found: list[dict[str, float]] = page.locator(parts).evaluate_all(middles)
    return {round((box["top"] + box["bottom"]) / 20) for box in found}
