"""Packets of a run, played over the drawing."""

from __future__ import annotations

import re

from playwright.sync_api import Page, Route, expect

from .conftest import Served
from .steps import SCENARIO, opened, write


def test_packets_move_along_their_links(page: Page, served: Served) -> None:
    opened(page, served)
    page.get_by_role("tab", name="Packets").click()
    slider = page.get_by_label("Time of the run")
    clock = page.locator(".clock")
    expect(slider).to_have_attribute("max", "3")
    slider.fill("1.5")
    expect(clock).not_to_have_attribute("data-dots", "0")
    paused_at = str(clock.get_attribute("data-time"))
    page.get_by_role("button", name="Play", exact=True).click()
    expect(clock).not_to_have_attribute("data-time", paused_at)


def test_curves_mark_the_time_that_is_played_and_a_click_on_them_goes_there(
    page: Page, served: Served
) -> None:
    opened(page, served)
    page.get_by_role("tab", name="Packets").click()
    slider, clock = page.get_by_label("Time of the run"), page.locator(".clock")
    expect(slider).to_have_attribute("max", "3")
    chart = page.locator(".chart[data-panel=Goodput]")
    slider.fill("1.5")
    head, plot = chart.locator(".playhead"), chart.locator(".u-over")
    # It is where the axis has this time.
    page.wait_for_function(
        """() => {
            const chart = document.querySelector(".chart[data-panel=Goodput]");
            const of = (name) => chart?.querySelector(name)?.getBoundingClientRect();
            const [head, plot] = [of(".playhead"), of(".u-over")];
            return head && plot && Math.abs(head.left - (plot.left + plot.width / 2)) < 3;
        }"""
    )
    expect(head).to_be_visible()
    box = plot.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 3, box["y"] + box["height"] / 2)
    page.wait_for_function("() => Math.abs(Number(document.querySelector('.clock').dataset.time) - 1) < 0.05")
    expect(clock).not_to_have_attribute("data-dots", "0")
    # A tab that is left stops the playback, and leaves nothing behind that fails.
    page.get_by_role("button", name="Play", exact=True).click()
    page.get_by_role("tab", name="Curves").click()
    expect(chart).to_be_visible()
    expect(head).to_have_count(0)


def test_packets_asked_for_earlier_do_not_replace_those_of_the_time_looked_at(
    page: Page, served: Served
) -> None:
    opened(page, served)
    page.get_by_role("tab", name="Packets").click()
    slider, clock = page.get_by_label("Time of the run"), page.locator(".clock")
    expect(slider).to_have_attribute("max", "3")
    slider.fill("0.5")
    expect(clock).not_to_have_attribute("data-dots", "0")
    held: list[Route] = []

    def late(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route(re.compile(r"/api/packets\?"), late)
    with page.expect_request(re.compile(r"/api/packets\?")):
        slider.fill("1")
    slider.fill("1.5")
    expect(clock).not_to_have_attribute("data-dots", "0")
    with page.expect_response(re.compile(r"/api/packets\?")) as answer:
        held[0].continue_()
    answer.value.finished()
    page.evaluate("() => new Promise((done) => setTimeout(done, 300))")
    assert clock.get_attribute("data-dots") != "0"


CHANGING = """tcplab: 1
name: changing
network:
  nodes: [a, b]
  links:
    - {ends: [a, b], rate: 10 Mbit/s, delay: 5 ms, queue: 20 packets, at: {1 s: {up: off}, 2 s: {up: on}}}
flows:
  - {name: bulk, kind: tcp, cc: reno, from: a, to: b}
duration: 3 s
"""


def test_a_link_that_is_down_is_shown_while_packets_are_played(page: Page, served: Served) -> None:
    opened(page, served, CHANGING)
    page.get_by_role("tab", name="Packets").click()
    slider, states = page.get_by_label("Time of the run"), page.get_by_label("Links that have changed")
    expect(slider).to_have_attribute("max", "3")
    slider.fill("1.5")
    expect(states).to_have_text("a-b: down")
    slider.fill("2.5")
    expect(states).to_have_count(0)


def test_a_kept_run_that_has_recorded_packets_is_played(page: Page, served: Served) -> None:
    opened(page, served, SCENARIO + "sample: {packets: on}\n")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".chip.run")).to_have_count(1)
    page.get_by_role("tab", name="Packets").click()
    # The simulation's packets first, so that the run's are asked for when it is chosen.
    page.get_by_label("Time of the run").fill("1.5")
    expect(page.locator(".clock")).not_to_have_attribute("data-dots", "0")
    (result,) = (served.root / "runs").iterdir()
    with page.expect_response(re.compile(r"/api/packets\?run=runs")) as answer:
        page.locator(".playback label", has_text="the simulation").locator("select").select_option(
            f"runs/{result.name}"
        )
    assert answer.value.ok
    page.get_by_label("Time of the run").fill("1.6")
    expect(page.locator(".clock")).not_to_have_attribute("data-dots", "0")


def test_an_error_in_the_text_is_said_in_words(page: Page, served: Served) -> None:
    opened(page, served)
    page.get_by_role("tab", name="Packets").click()
    expect(page.get_by_role("button", name="Play")).to_be_enabled()
    write(page, SCENARIO + "duration: 4 s\n")
    expect(page.get_by_text("Fix the errors in the scenario to see packets.")).to_be_visible()


def test_the_run_that_is_played_is_chosen_beside_the_clock(page: Page, served: Served) -> None:
    opened(page, served)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".chip.run")).to_have_count(1)
    page.get_by_role("tab", name="Packets").click()
    chosen = page.get_by_role("combobox", name="Run")
    expect(chosen).to_be_visible()
    # On one line at 1280: the curves below have the room.
    box, play = chosen.bounding_box(), page.get_by_role("button", name="Play").bounding_box()
    assert box is not None
    assert play is not None
    assert abs(box["y"] - play["y"]) < 5, (box, play)
