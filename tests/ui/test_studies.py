"""Studies: the grid, its progress, and its cells."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tcplab import study
from tcplab.study.report import write_study_report

from .conftest import Served
from .steps import SCENARIO


def run_study(page: Page, served: Served, axis: str, repeat: int = 1, scenario: str = SCENARIO) -> None:
    """Run a study of a scenario with one axis, from its page."""
    (served.root / "small.yaml").write_text(scenario)
    (served.root / "grid.yaml").write_text(
        f"tcplab: 1\nstudy: grid\nscenario: small.yaml\ngrid:\n  {axis}\nrepeat: {repeat}\n"
    )
    page.goto(served.key)
    page.get_by_role("button", name="Run the study grid.yaml").click()


def test_a_study_fills_its_grid(page: Page, served: Served) -> None:
    run_study(page, served, "cc: {set: flows.bulk.cc, values: [reno, cubic]}")
    expect(page.locator(".heat td")).to_have_count(2)
    expect(page.locator(".study [role=status]")).to_contain_text("done")
    with page.expect_download() as started:
        page.get_by_role("link", name="Download report").click()
    assert "<html" in started.value.path().read_text(encoding="utf-8").lower()
    page.locator(".heat td button").first.click()
    expect(page.get_by_label("Summary")).to_contain_text("bulk")


def test_a_study_shows_each_cell_as_its_runs_end(page: Page, served: Served) -> None:
    run_study(
        page,
        served,
        "length: {set: duration, values: [2 s, 1000000 s]}",
        scenario=SCENARIO + "sample: {sockets: off, queues: off, flows: 1 s}\n",
    )
    # The short run has its figure while the other, which would last for ever, has none.
    short, long = page.locator(".heat td").first, page.locator(".heat td").last
    expect(short).to_contain_text("bit/s")
    expect(long).to_have_text("0 of 1 run")
    expect(page.get_by_label("Progress of the study")).to_be_visible()
    page.get_by_role("button", name="Stop").first.click()
    expect(page.locator(".study [role=status]")).to_contain_text("interrupted")
    expect(short).to_contain_text("bit/s")
    # Resumed, it makes what is missing: the other run alone.
    resume = page.get_by_role("button", name="Resume: make 1 missing run")
    expect(resume).to_be_enabled()
    resume.click()
    expect(page.get_by_label("Progress of the study")).to_be_visible()
    expect(page.locator(".study [role=status]")).to_contain_text("0 of 1 run")
    page.get_by_role("button", name="Stop").first.click()
    expect(page.locator(".study [role=status]")).to_contain_text("interrupted")


def test_a_study_that_varies_one_thing_at_a_time_has_a_filled_grid(page: Page, served: Served) -> None:
    run_study(
        page,
        served,
        "cc: {set: flows.bulk.cc, values: [reno, cubic]}\n"
        "  length: {set: duration, values: [1 s, 2 s]}\n"
        "cells:\n"
        "  - {group: baseline}\n"
        "  - {group: control, cc: [cubic]}\n"
        "  - {group: time, length: [1 s, 2 s]}",
    )
    expect(page.locator(".study [role=status]")).to_contain_text("done")
    expect(page.locator(".heat td")).to_contain_text(["bit/s", "bit/s"])
    expect(page.get_by_label("Down")).to_have_value("")
    # Points and rows are those of its groups: a baseline has no value of any axis.
    expect(page.locator(".trade-off figcaption .of-link")).to_have_text(["baseline", "control", "time"])
    assert (
        len(
            set(
                page.locator(".trade-off rect").evaluate_all(
                    "(all) => all.map((one) => one.className.baseVal)"
                )
            )
        )
        == 3
    )
    expect(page.get_by_role("region", name="Cells of the study")).to_contain_text("baseline")
    page.get_by_role("tab", name="Files").click()
    expect(page.locator(".files .item[aria-current=true] .name")).to_have_text("grid")


def test_a_wide_grid_scrolls_within_itself_and_is_whole(page: Page, served: Served) -> None:
    rates = [f"{number} Mbit/s" for number in range(1, 25)]
    page.set_viewport_size({"width": 1280, "height": 800})
    run_study(
        page,
        served,
        f"rate: {{set: network.path.rate, values: {rates}}}",
        scenario=SCENARIO.replace("3 s", "0.1 s"),
    )
    grid = page.get_by_role("region", name="Grid of the study")
    expect(grid.locator("td button")).to_have_count(len(rates))
    assert page.locator(".study").evaluate("(all) => all.scrollWidth <= all.clientWidth")
    assert grid.evaluate("(own) => own.scrollWidth > own.clientWidth && own.scrollHeight <= own.clientHeight")
    grid.evaluate("(own) => own.scrollTo(own.scrollWidth, 0)")
    expect(grid.locator("td").last).to_be_in_viewport(ratio=1)


def test_a_study_says_which_runs_failed_and_why(page: Page, served: Served) -> None:
    # The simulator has no iperf3.
    run_study(page, served, "by: {set: flows.bulk.generator, values: [native, iperf3]}", repeat=2)
    expect(page.locator(".study [role=status]")).to_have_text("done")
    expect(page.get_by_role("main")).to_contain_text("2 of 4 runs failed")
    # Their engine refuses them still.
    expect(page.get_by_role("button", name="Resume")).to_have_count(0)
    expect(page.locator(".heat td").last).to_have_text("2 of 2 failed")
    cells = page.get_by_role("region", name="Cells of the study")
    expect(cells).to_contain_text("iperf3 is a program and needs a real network stack")


def test_a_study_says_that_its_report_is_being_written(page: Page, served: Served) -> None:
    """However short that is: what stood there is kept."""
    page.add_init_script(
        """addEventListener("DOMContentLoaded", () => new MutationObserver(() => {
            const said = document.querySelector(".study [role=status]")?.textContent;
            if (said === "writing the report") window.seen = document.querySelector("main .row").innerText;
        }).observe(document, {subtree: true, childList: true, characterData: true}))"""
    )
    run_study(page, served, "cc: {set: flows.bulk.cc, values: [reno, cubic]}")
    expect(page.locator(".study [role=status]")).to_contain_text("done")
    assert "Stop" not in page.evaluate("window.seen")


def test_a_study_that_cannot_begin_says_why_and_nothing_else(page: Page, served: Served) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    run_study(page, served, "cc: {set: flows.bulk.cc, values: [reno, ./absent.c]}")
    said = page.locator(".study [role=status]")
    expect(said).to_contain_text("failed: grid.yaml:5:")
    expect(said).to_contain_text("absent.c")
    # Neither the line of the file with marks under it, nor that there are no results.
    expect(said).not_to_contain_text("^")
    expect(page.locator(".study .empty")).to_have_count(0)
    notice = page.locator(".notice.bad")
    expect(notice).to_contain_text("absent.c")
    # Its lines are those of a phone's width.
    box = notice.bounding_box()
    assert box is not None
    assert box["width"] > 300
    page.set_viewport_size({"width": 1280, "height": 800})


def test_a_report_s_curves_are_of_the_values_that_are_chosen(browser: Browser, tmp_path: Path) -> None:
    """Of a grid of three axes; of one of the values there may be none."""
    rate = "network.path.rate: [5 Mbit/s, 10 Mbit/s, 20 Mbit/s]"
    grid = f"{{{rate}, flows.bulk.cc: [reno, cubic], network.path.rtt: [10 ms, 40 ms]}}"
    (tmp_path / "grid.yaml").write_text(
        f"tcplab: 1\nstudy: grid\nscenario: small.yaml\ngrid: {grid}\nbaseline: {{rtt: 40 ms}}\nrepeat: 1\n"
    )
    (tmp_path / "small.yaml").write_text(SCENARIO)
    found = study.run(tmp_path / "grid.yaml", output=tmp_path / "out")
    page = browser.new_page()
    page.goto(write_study_report(found).as_uri())
    figure, chosen = page.locator("#chart-1"), page.get_by_label("rtt").first
    expect(chosen).to_have_value("40 ms")
    shown = "document.getElementById('chart-1').data.map((trace) => trace.y)"
    slow = page.evaluate(shown)
    assert [len(line) for line in slow] == [3, 3]
    chosen.select_option("10 ms")
    assert page.evaluate(shown) != slow
    page.locator("#chart-1-0").evaluate("(element) => element.remove()")
    chosen.select_option("40 ms")
    assert page.evaluate(shown) == slow
    chosen.select_option("10 ms")
    expect(figure).to_have_text("No cell with these values has a result.")
    chosen.select_option("40 ms")
    assert page.evaluate(shown) == slow
