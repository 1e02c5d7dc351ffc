"""Curves of simulations and of kept runs: overlays, windows, panels."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

import tcplab
from tcplab.server.tests.conftest import SHARED

from .conftest import Served
from .steps import SCENARIO, chart, opened, simulated, write


def with_a_run(page: Page, served: Served) -> None:
    """The page with a kept run of Reno over the simulation of CUBIC."""
    opened(page, served)
    simulated(page)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".chip.run")).to_have_count(1)
    write(page, SCENARIO.replace("reno", "cubic"))


def test_a_run_is_kept_and_laid_over_the_simulation(page: Page, served: Served) -> None:
    with_a_run(page, served)
    # Its own curve, the ghost of the former one, and the run.
    expect(chart(page, "Goodput")).to_have_attribute("data-lines", "3")
    (result,) = (served.root / "runs").iterdir()
    assert tcplab.load(result).status == "done"
    page.get_by_role("tab", name="Files").click()
    page.locator(".result .item").first.click()
    expect(page.get_by_label("Summary")).to_contain_text("bulk")


INKS = """(figure, stroke) => {
    const canvas = figure.querySelector("canvas");
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const wanted = [1, 3, 5].map((at) => parseInt(stroke.slice(at, at + 2), 16));
    let found = 0;
    for (let at = 0; at < data.length; at += 4) {
        if (data[at + 3] === 255 && wanted.every((part, channel) => part === data[at + channel])) found++;
    }
    return found;
}"""


def test_the_chip_of_a_run_has_its_line_s_colour_and_dashes(page: Page, served: Served) -> None:
    with_a_run(page, served)
    expect(chart(page, "Goodput")).to_have_attribute("data-lines", "3")
    sample = page.locator(".chip.run svg line")
    expect(sample).to_have_attribute("stroke-dasharray", "6 4")
    stroke = sample.get_attribute("stroke")
    assert chart(page, "Goodput").evaluate(INKS, stroke) > 20
    # Without the run its colour is gone.
    page.locator(".chip.run [aria-pressed=true]").click()
    expect(chart(page, "Goodput")).to_have_attribute("data-lines", "2")
    assert chart(page, "Goodput").evaluate(INKS, stroke) == 0


def test_a_result_with_a_long_name_is_listed_with_its_date(page: Page, served: Served) -> None:
    scenario = served.root / "small.yaml"
    scenario.write_text(SCENARIO)
    tcplab.run(scenario, output=served.root / "runs" / ("long-" * 12))
    page.goto(served.key)
    item = page.locator(".result .item", has_text="long-")
    date = item.locator("small")
    expect(date).to_be_visible()
    inner, outer = date.bounding_box(), item.bounding_box()
    assert inner is not None
    assert outer is not None
    assert inner["x"] + inner["width"] <= outer["x"] + outer["width"]


def test_a_result_is_printed_whole_and_without_the_tools(page: Page, served: Served) -> None:
    opened(page, served)
    tcplab.run(served.root / "small.yaml", output=served.root / "runs" / "mine")
    page.locator(".result .item", has_text="mine").click()
    summary = page.get_by_role("region", name="Summary")
    expect(summary).to_be_visible()
    page.set_viewport_size({"width": 800, "height": 420})
    assert summary.evaluate("one => one.scrollHeight > one.clientHeight")
    page.emulate_media(media="print")
    for hidden in (".topbar", ".sidebar", ".upper"):
        expect(page.locator(hidden)).to_be_hidden()
    assert summary.evaluate("one => one.scrollHeight <= one.clientHeight")
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 1280, "height": 800})


def test_a_flow_has_one_colour_on_the_drawing_and_in_the_curves(page: Page, served: Served) -> None:
    # The one that starts last is the last that has samples.
    late = "  - {name: late, kind: tcp, start: 1 s}\n  - {name: noise, kind: udp, rate: 1 Mbit/s}\n"
    opened(page, served, SCENARIO.replace("duration: 3 s", f"{late}duration: 3 s"))
    expect(page.locator(".chip")).to_have_count(3)
    for number, name in enumerate(("bulk", "late", "noise")):
        expect(page.locator(".chip", has_text=name)).to_have_class(re.compile(rf"\bflow-{number}\b"))
        arc = page.get_by_label(re.compile(f"^Flow {name}")).locator(".arc")
        expect(arc).to_have_class(re.compile(rf"\bflow-{number}\b"))


def test_runs_are_laid_over_each_other_and_compared(page: Page, served: Served) -> None:
    with_a_run(page, served)
    expect(page.locator(".arc-label")).to_have_text("bulk · cubic")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".chip.run")).to_have_count(2)
    # The simulation, the ghost of the former one, and both runs.
    expect(chart(page, "Round-trip time")).to_have_attribute("data-lines", "4")
    # A hidden line is hidden in every panel, and taken away with its chip.
    page.locator(".chip.run").first.get_by_role("button").first.click()
    expect(chart(page, "Round-trip time")).to_have_attribute("data-lines", "3")
    with page.context.expect_page() as opening:
        page.get_by_role("link", name="Compare in a report").click()
    expect(opening.value.locator("body")).to_contain_text("cubic")
    page.locator(".chip.run").first.get_by_role("button", name="Remove").click()
    expect(page.locator(".chip.run")).to_have_count(1)


def test_a_stretch_that_is_dragged_over_is_read_again_in_detail(page: Page, served: Served) -> None:
    opened(page, served)
    plot = chart(page, "Goodput").locator(".u-over")
    whole = page.get_by_role("button", name="Whole run")
    expect(whole).to_have_count(0)
    with page.expect_response(re.compile(r"/api/curves")) as answer:
        dragged(page, plot, 0.25, 0.5)
    asked = parse_qs(urlsplit(answer.value.url).query)
    start, end = float(asked["from"][0]), float(asked["to"][0])
    assert 0.5 < start < 1 < end < 1.75
    assert asked["panels"] == ["goodput,cwnd,rtt,queue,echo"]
    expect(whole).to_be_visible()
    # Every panel shows that stretch: a further one is within it.
    with page.expect_response(re.compile(r"/api/curves")) as answer:
        dragged(page, chart(page, "Queue").locator(".u-over"), 0.25, 0.75)
    asked = parse_qs(urlsplit(answer.value.url).query)
    assert start < float(asked["from"][0]) < float(asked["to"][0]) < end
    plot.dblclick()
    expect(whole).to_have_count(0)


def dragged(page: Page, plot: Locator, start: float, end: float) -> None:
    """Drag over a plot, between two shares of its width, once it stands still."""
    plot.hover()
    box = plot.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + start * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + end * box["width"], y, steps=8)
    page.mouse.up()


def test_panels_of_what_the_report_works_out(page: Page, served: Served) -> None:
    opened(page, served, SHARED)
    page.get_by_text("Panels", exact=True).click()
    for name in (
        "Slow-start threshold",
        "Jain's index",
        "Queue discipline state",
        "RTT, distribution",
    ):
        page.get_by_label(name).check()
    page.get_by_text("Panels", exact=True).click()
    jain = page.locator('.chart[data-panel="Jain\'s index"]')
    expect(chart(page, "Slow-start threshold")).to_have_attribute("data-lines", "2")
    expect(jain).to_have_attribute("data-lines", "1")
    expect(page.locator(".chart[data-panel^='Queue discipline state, ']").first).to_be_visible()
    rtt = chart(page, "RTT, distribution")
    expect(rtt).to_have_attribute("data-lines", "2")
    # The unit of its values is that of the axis across.
    expect(rtt.locator("figcaption")).to_contain_text("RTT, distribution share")
    # Its own axis is zoomed on its own; the window of time stays.
    page.mouse.move(0, 0)
    before = rtt.locator(".uplot").screenshot()
    dragged(page, rtt.locator(".u-over"), 0.5, 0.9)
    page.mouse.move(0, 0)
    expect(page.get_by_role("button", name="Whole run")).to_have_count(0)
    assert rtt.locator(".uplot").screenshot() != before
    # A panel without curves says why.
    write(page, SCENARIO)
    expect(page.locator('.chart[data-panel="Jain\'s index"]')).to_contain_text("No flows share")


def test_round_trips_by_size_are_shown_where_a_run_has_echoes(page: Page, served: Served) -> None:
    opened(page, served)
    simulated(page)
    by_size = chart(page, "Round-trip time by message size")
    expect(by_size).to_have_count(0)
    echo = "{name: echo, kind: echo, sizes: 1..64, iterations: 20, clients: 1}"
    write(page, SCENARIO.replace("{name: bulk, kind: tcp, cc: reno}", echo))
    expect(by_size).to_have_attribute("data-lines", "1")
    expect(by_size).to_have_attribute(
        "aria-label", re.compile(r"echo 2\d(\.\d)?\sms at 1\sB to \d+(\.\d)?\sms at 64\sB")
    )
    # The readout names a size that was sent, wherever between two sizes the pointer is.
    area = by_size.locator(".u-over")
    box = area.bounding_box()
    assert box is not None
    for share in (0.1, 0.42, 0.6, 0.99):
        area.hover(position={"x": box["width"] * share, "y": box["height"] / 2})
        expect(by_size.locator(".readout b")).to_have_text(re.compile(r"^(1|2|4|8|16|32|64)\sB$"))


def test_the_phases_of_controls_have_a_legend(page: Page, served: Served) -> None:
    opened(page, served)
    page.get_by_role("button", name="Phases").click()
    phases = page.get_by_role("list", name="Phases of bulk")
    expect(phases).to_contain_text("SLOW_START")
    colours = phases.locator(".swatch").evaluate_all("(all) => all.map((one) => one.style.background)")
    assert len(colours) == len(set(colours)) > 1


def test_curves_of_many_flows_have_room_beside_their_names(page: Page, served: Served) -> None:
    flows = "".join(f"  - {{name: flow{number}, kind: tcp, cc: reno}}\n" for number in range(120))
    only = "  - {name: bulk, kind: tcp, cc: reno}   # the only one\n"
    opened(page, served, SCENARIO.replace(only, flows).replace("duration: 3 s", "duration: 1 s"))
    goodput = chart(page, "Goodput")
    expect(goodput).to_have_attribute("data-lines", "120")
    size, seen = page.viewport_size, goodput.bounding_box()
    assert size is not None
    assert seen is not None
    assert seen["height"] >= 70
    assert seen["y"] + seen["height"] <= size["height"]
    # Each name is reached: they scroll.
    page.get_by_role("button", name="flow119", exact=True).click()
    expect(goodput).to_have_attribute("data-lines", "119")
    page.get_by_role("button", name="Panels", exact=True).click()
    menu = page.locator(".menu").bounding_box()
    assert menu is not None
    assert menu["y"] >= 0


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (1920, 1080)])
def test_each_of_five_panels_is_high_enough_to_be_read(
    page: Page, served: Served, width: int, height: int
) -> None:
    page.set_viewport_size({"width": width, "height": height})
    opened(page, served, SCENARIO.replace("duration", "  - {name: calls, kind: echo}\nduration"))
    panels = page.locator(".charts .chart")
    expect(panels).to_have_count(5)
    heights = panels.evaluate_all("(all) => all.map((one) => one.clientHeight)")
    assert min(heights) >= 130, heights
    # Keys reach the panels below the others; scrolling stops at a whole pixel.
    panels.last.focus()
    expect(panels.last).to_be_in_viewport(ratio=0.99)
    page.set_viewport_size({"width": 1280, "height": 800})


def test_what_a_result_offers_is_on_one_line(page: Page, served: Served) -> None:
    opened(page, served, SCENARIO.replace("name: small", "name: short-queue"))
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".chip.run")).to_have_count(1)
    page.locator(".result .item").first.click()
    names = ("Hide curves", "Open scenario", "Copy link")
    boxes = [page.get_by_role("button", name=name).bounding_box() for name in names]
    assert len({box["y"] for box in boxes if box is not None}) == 1, boxes
