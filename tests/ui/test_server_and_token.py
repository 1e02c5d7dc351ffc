"""The page and its server: failures, the token, other sites, a server that dies, two pages, links."""

from __future__ import annotations

import re
import signal
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

import tcplab

from .conftest import TOKEN, Served, visited
from .steps import SCENARIO, chart, open_file, opened, settled, write


@pytest.mark.refused("/api/import")
def test_what_went_wrong_stays_until_it_is_dismissed(page: Page, served: Served) -> None:
    page.clock.install()
    opened(page, served)
    write(page, SCENARIO.replace("reno", "cubic"))
    page.keyboard.press("Control+s")
    notices = page.locator(".notice")
    expect(notices).to_have_text(re.compile("Saved small.yaml"))
    page.clock.fast_forward(10_000)
    expect(notices).to_have_count(0)
    open_file(page, "broken.mn", "not MiniEdit's")
    expect(notices).to_have_text(re.compile("Not opened: broken.mn"))
    page.clock.fast_forward(600_000)
    write(page, SCENARIO.replace("reno", "vegas"))
    page.keyboard.press("Control+s")
    expect(notices).to_have_count(2)
    expect(notices.first).to_contain_text("broken.mn")
    notices.first.get_by_role("button", name="Dismiss").click()
    expect(notices).to_have_text(re.compile("Saved small.yaml"))


@pytest.mark.refused("/api/runs")
def test_a_run_that_fails_says_why_and_leaves_the_page_alive(page: Page, served: Served) -> None:
    (served.root / "runs").write_text("a file where results should go")
    opened(page, served)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".notice.bad")).to_contain_text("Not run")
    write(page, SCENARIO.replace("reno", "cubic"))
    expect(page.locator(".arc-label")).to_have_text("bulk · cubic")
    expect(chart(page, "Goodput")).to_be_visible()


@pytest.mark.refused("status of 401")
def test_without_the_token_nothing_is_shown(page: Page, served: Served) -> None:
    (served.root / "small.yaml").write_text(SCENARIO)
    page.goto(served.address)
    expect(page.get_by_text("It contains the access token")).to_be_visible()
    page.get_by_label("paste the address").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("wrong token")
    page.get_by_label("paste the address").fill(served.key)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="small", exact=True)).to_be_visible()
    page.goto(served.key)
    expect(page).to_have_url(re.compile(r"^[^#]*#?$"))
    assert TOKEN not in page.evaluate("location.href")


def test_another_sites_page_reaches_nothing(browser: Browser, served: Served, tmp_path: Path) -> None:
    page = visited(browser)
    page.goto(served.key)
    page.wait_for_selector(".topbar")
    # The same browser, with the cookie, on a page of another origin.
    elsewhere = page.context.new_page()
    elsewhere.route("http://evil.example/", lambda route: route.fulfill(body="<p>hello"))
    elsewhere.goto("http://evil.example/")
    script = """async (address) => {
        const socket = await new Promise((done) => {
            const made = new WebSocket(address.replace("http", "ws") + "api/live");
            made.onopen = () => done("open");
            made.onerror = () => done("refused");
        });
        const asked = fetch(address + "api/files", {credentials: "include"});
        const read = await asked.then(() => "read", () => "refused");
        return [socket, read];
    }"""
    assert elsewhere.evaluate(script, served.address) == ["refused", "refused"]
    page.context.close()


def test_a_server_that_dies_and_comes_back_loses_nothing(page: Page, served: Served) -> None:
    opened(page, served)
    expect(page.locator(".cm-content")).to_be_visible()
    served.stop(signal.SIGKILL)
    expect(page.get_by_role("alert")).to_contain_text("Connection to the server lost")
    write(page, SCENARIO.replace("10 Mbit/s", "5 Mbit/s"))
    expect(page.locator(".wire-label")).to_contain_text("5 Mbit/s")
    page.keyboard.press("Control+s")
    away = f"no answer from {served.address.rstrip('/')}: check that tcplab ui still runs there"
    expect(page.locator(".notice")).to_contain_text(f"small.yaml is not saved: {away}")
    expect(page.locator(".notice")).to_contain_text("kept in this browser")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".notice").last).to_contain_text(f"Not run: {away}")
    page.get_by_role("button", name="Run the study tuning").click()
    expect(page.locator(".notice").last).to_contain_text(f"Not started: {away}")
    expect(page.get_by_role("alert")).to_contain_text(served.address.rstrip("/"))
    served.start()
    expect(page.get_by_text("Connection to the server lost")).to_have_count(0)
    expect(chart(page, "Goodput")).to_be_visible()
    page.keyboard.press("Control+s")
    expect(page.locator(".notice").last).to_contain_text("Saved small.yaml")
    assert "5 Mbit/s" in (served.root / "small.yaml").read_text()


def test_parts_that_do_not_come_are_asked_for_again(page: Page, served: Served) -> None:
    """A server may die while the page is being loaded."""
    parts = re.compile("/assets/(Editor|elk)")
    page.route(parts, lambda route: route.abort())
    (served.root / "small.yaml").write_text(SCENARIO)
    page.goto(served.key)
    page.get_by_role("button", name="small", exact=True).click()
    expect(chart(page, "Goodput")).to_be_visible()
    expect(page.get_by_role("region", name="Scenario as YAML")).to_have_attribute("aria-busy", "true")
    page.unroute(parts)
    expect(page.locator(".cm-content")).to_be_visible()
    settled(page)


def test_a_run_of_a_server_that_came_back_is_laid_over_as_any_other(page: Page, served: Served) -> None:
    """Each server counts its runs from 1."""
    opened(page, served)
    # Not the lines of the chart: one that is still running has a line too.
    laid_over = page.locator(".chip.run")
    for runs in (1, 2):
        page.get_by_role("button", name="Run", exact=True).click()
        expect(laid_over).to_have_count(runs)
        served.stop()
        expect(page.get_by_role("alert")).to_contain_text("Connection to the server lost")
        served.start()
        expect(page.get_by_text("Connection to the server lost")).to_have_count(0)


@pytest.mark.refused("status of 410")
def test_a_simulation_that_the_server_no_longer_has_is_made_again(page: Page, served: Served) -> None:
    opened(page, served)
    goodput = chart(page, "Goodput")
    expect(goodput).to_have_attribute("data-lines", "1")
    samples = int(goodput.get_attribute("data-samples") or 0)
    served.stop()
    expect(page.get_by_role("alert")).to_contain_text("Connection to the server lost")
    served.start()
    expect(page.get_by_text("Connection to the server lost")).to_have_count(0)
    box = goodput.locator(".u-over").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 20, steps=5)
    page.mouse.up()
    expect(goodput).not_to_have_attribute("data-samples", str(samples))


def test_two_pages_see_each_others_changes_or_are_notified(
    page: Page, served: Served, browser: Browser
) -> None:
    opened(page, served)
    other = visited(browser)
    other.goto(served.key)
    other.get_by_role("button", name="small", exact=True).click()
    expect(other.locator(".device")).to_have_count(2)
    write(page, SCENARIO.replace("reno", "bbr1"))
    page.keyboard.press("Control+s")
    expect(other.locator(".arc-label")).to_have_text("bulk · bbr1")
    # Both edit: the second to save is notified, and chooses.
    write(other, SCENARIO.replace("reno", "vegas"))
    write(page, SCENARIO.replace("reno", "hybla"))
    page.keyboard.press("Control+s")
    expect(other.get_by_role("alert")).to_contain_text("changed elsewhere")
    other.get_by_role("button", name="Load the other version").click()
    expect(other.locator(".arc-label")).to_have_text("bulk · hybla")
    other.context.close()


def test_a_scenario_and_a_result_are_handed_on_as_a_link_or_a_file(
    page: Page, served: Served, browser: Browser, tmp_path: Path
) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=served.address.rstrip("/"))
    opened(page, served)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".chip.run")).to_have_count(1)
    page.get_by_label("Share").click()
    with page.expect_download() as started:
        page.get_by_role("button", name="Download scenario").click()
    assert started.value.path().read_text(encoding="utf-8") == SCENARIO
    page.get_by_label("Share").click()
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator(".notice")).to_contain_text("clipboard")
    scenario = str(page.evaluate("navigator.clipboard.readText()"))
    page.locator(".result .item").first.click()
    page.get_by_role("button", name="Copy link").click()
    page.wait_for_function(
        "(before) => navigator.clipboard.readText().then((now) => now !== before)", arg=scenario
    )
    result = str(page.evaluate("navigator.clipboard.readText()"))
    assert TOKEN not in scenario + result
    with page.expect_download() as started:
        page.get_by_role("link", name="Download result").click()
    with zipfile.ZipFile(started.value.path()) as archive:
        archive.extractall(tmp_path / "handed")
    [handed] = (tmp_path / "handed").iterdir()
    assert tcplab.load(handed).status == "done"
    # Someone else's browser asks for the token, and then shows what the link names.
    other = visited(browser)
    other.goto(scenario)
    other.get_by_label("paste the address").fill(TOKEN)
    other.keyboard.press("Enter")
    expect(other.locator(".arc-label")).to_have_text("bulk · reno")
    other.goto("about:blank")
    other.goto(result)
    expect(other.get_by_label("Summary")).to_contain_text("bulk")
    other.context.close()


def test_a_page_whose_first_request_fails_asks_again(page: Page, served: Served) -> None:
    (served.root / "small.yaml").write_text(SCENARIO)
    # As when an interface of the machine comes or goes.
    page.route("**/api/session", lambda route: route.abort("failed"), times=1)
    page.goto(served.key)
    expect(page.get_by_role("button", name="small", exact=True)).to_be_visible()


def test_a_directory_that_cannot_be_read_is_named_above_the_files(page: Page, served: Served) -> None:
    """Whoever runs the tests may be root, to whom every directory is open."""

    def answer(route: Route) -> None:
        found = route.fetch()
        route.fulfill(
            response=found, json={**found.json(), "unreadable": ["secret: cannot be read: Permission denied"]}
        )

    page.route("**/api/files", answer)
    page.goto(served.key)
    files = page.get_by_role("navigation", name="Files")
    expect(files.get_by_text("secret: cannot be read: Permission denied")).to_be_visible()
