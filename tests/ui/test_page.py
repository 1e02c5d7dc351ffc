"""The page in a real browser, against the real server."""

from __future__ import annotations

import re
import signal
import zipfile
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Browser, FilePayload, Locator, Page, expect

import tcplab
from tcplab.scenario import expand, load
from tcplab.server.tests.conftest import SHARED

from .conftest import PATIENCE, TOKEN, Served, visited

expect.set_options(timeout=PATIENCE)

SCENARIO = """# Kept.
tcplab: 1
name: small
network:
  path: {rate: 10 Mbit/s, rtt: 20 ms, queue: 20 packets}
flows:
  - {name: bulk, kind: tcp, cc: reno}   # the only one
duration: 3 s
"""


def opened(page: Page, served: Served, text: str = SCENARIO, nodes: int = 2) -> None:
    """The page with this scenario open."""
    (served.root / "small.yaml").write_text(text)
    page.goto(served.key)
    page.get_by_role("button", name="small", exact=True).click()
    expect(page.locator(".device")).to_have_count(nodes)
    settled(page)


def settled(page: Page) -> None:
    """Wait until the drawing is laid out and seen whole."""
    expect(page.get_by_role("region", name="Network", exact=True)).to_have_attribute("aria-busy", "false")


def chart(page: Page, title: str) -> Locator:
    return page.locator(f".chart[data-panel='{title}']")


def write(page: Page, text: str) -> None:
    """Replace the editor's text."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def simulated(page: Page) -> None:
    """Wait for the simulation's curve, before there are others."""
    expect(chart(page, "Goodput")).to_have_attribute("data-lines", "1")


def text_of(page: Page) -> str:
    """The text in the editor."""
    return "\n".join(page.locator(".cm-line").all_inner_texts())


def reads(page: Page, text: str) -> None:
    """Wait until this stands in the editor."""
    expect(page.locator(".cm-line")).to_have_text([*text.rstrip().split("\n"), ""])


def drag(page: Page, start: str, end: str) -> None:
    """From the right edge of one node to the left edge of another."""
    page.locator(f"[data-node={start}]").hover()
    a = page.locator(f"[data-node={start}] .react-flow__handle-right").bounding_box()
    b = page.locator(f"[data-node={end}] .react-flow__handle-left").bounding_box()
    assert a is not None
    assert b is not None
    page.mouse.move(a["x"] + a["width"] / 2, a["y"] + a["height"] / 2)
    page.mouse.down()
    page.mouse.move(b["x"] + 20, b["y"] + 20, steps=6)
    page.mouse.move(b["x"] + b["width"] / 2, b["y"] + b["height"] / 2, steps=4)
    page.mouse.up()


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


def test_a_mistake_is_told_at_its_line_and_on_the_drawing(page: Page, served: Served) -> None:
    opened(page, served)
    expect(chart(page, "Goodput")).to_be_visible()
    write(page, SCENARIO.replace("10 Mbit/s", "10 Mbits"))
    mistakes = page.get_by_label("Mistakes and warnings")
    expect(mistakes).to_contain_text("line 5")
    expect(page.locator(".wire-label.wrong")).to_be_visible()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_disabled()
    write(page, "network: [")
    expect(mistakes).to_contain_text("not YAML")
    # The drawing stays while the text is broken.
    expect(page.locator(".device")).to_have_count(2)
    write(page, SCENARIO)
    expect(mistakes).to_have_count(0)


def test_a_run_is_kept_and_laid_over_the_simulation(page: Page, served: Served) -> None:
    opened(page, served)
    simulated(page)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".chip.run")).to_have_count(1)
    write(page, SCENARIO.replace("reno", "cubic"))
    # Its own curve, the ghost of the former one, and the run.
    expect(chart(page, "Goodput")).to_have_attribute("data-lines", "3")
    (result,) = (served.root / "runs").iterdir()
    assert tcplab.load(result).status == "done"
    page.get_by_role("tab", name="Files").click()
    page.locator(".result .item").first.click()
    expect(page.get_by_label("Summary")).to_contain_text("bulk")


def test_runs_are_laid_over_each_other_and_compared(page: Page, served: Served) -> None:
    opened(page, served)
    simulated(page)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".chip.run")).to_have_count(1)
    write(page, SCENARIO.replace("reno", "cubic"))
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
    assert asked["panels"] == ["goodput,cwnd,rtt,queue"]
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
        "State of the queue discipline",
        "RTT, distribution",
    ):
        page.get_by_label(name).check()
    page.get_by_text("Panels", exact=True).click()
    jain = page.locator('.chart[data-panel="Jain\'s index"]')
    expect(chart(page, "Slow-start threshold")).to_have_attribute("data-lines", "2")
    expect(jain).to_have_attribute("data-lines", "1")
    expect(page.locator(".chart[data-panel^='State of the queue discipline, ']").first).to_be_visible()
    rtt = chart(page, "RTT, distribution")
    expect(rtt).to_have_attribute("data-lines", "2")
    # Its own axis is zoomed on its own; the window of time stays.
    page.mouse.move(0, 0)
    before = rtt.locator(".uplot").screenshot()
    dragged(page, rtt.locator(".u-over"), 0.5, 0.9)
    page.mouse.move(0, 0)
    expect(page.get_by_role("button", name="Whole run")).to_have_count(0)
    assert rtt.locator(".uplot").screenshot() != before
    # A panel without curves says why.
    write(page, SCENARIO)
    expect(page.locator('.chart[data-panel="Jain\'s index"]')).to_contain_text(
        "No two flows or streams share"
    )


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


def test_a_run_that_fails_says_why_and_leaves_the_page_alive(page: Page, served: Served) -> None:
    (served.root / "runs").write_text("a file where results should go")
    opened(page, served)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator(".notice.bad")).to_contain_text("Not run")
    write(page, SCENARIO.replace("reno", "cubic"))
    expect(page.locator(".arc-label")).to_have_text("bulk · cubic")
    expect(chart(page, "Goodput")).to_be_visible()


def test_without_the_token_nothing_is_shown(page: Page, served: Served) -> None:
    (served.root / "small.yaml").write_text(SCENARIO)
    page.goto(served.address)
    expect(page.get_by_text("it holds the token that gives access")).to_be_visible()
    page.get_by_label("paste the address").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("the token is wrong")
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
    served.stop(signal.SIGKILL)
    expect(page.get_by_role("alert")).to_contain_text("The server has stopped")
    write(page, SCENARIO.replace("10 Mbit/s", "5 Mbit/s"))
    expect(page.locator(".wire-label")).to_contain_text("5 Mbit/s")
    page.keyboard.press("Control+s")
    expect(page.locator(".notice")).to_contain_text("kept in this browser")
    served.start()
    expect(page.get_by_text("The server has stopped")).to_have_count(0)
    expect(chart(page, "Goodput")).to_be_visible()
    page.keyboard.press("Control+s")
    expect(page.locator(".notice")).to_contain_text("Saved small.yaml")
    assert "5 Mbit/s" in (served.root / "small.yaml").read_text()


def test_two_pages_see_each_others_changes_or_are_told(page: Page, served: Served, browser: Browser) -> None:
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
    other.get_by_role("button", name="Take the other text").click()
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
        page.get_by_role("button", name="Download the scenario").click()
    assert started.value.path().read_text(encoding="utf-8") == SCENARIO
    page.get_by_label("Share").click()
    page.get_by_role("button", name="Copy a link to it").click()
    expect(page.locator(".notice")).to_contain_text("clipboard")
    scenario = str(page.evaluate("navigator.clipboard.readText()"))
    page.locator(".result .item").first.click()
    page.get_by_role("button", name="Copy a link").click()
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


ROUTED = """tcplab: 1
name: routed
network:
  nodes: [h1, {name: r1, kind: router}, h2]
  links:
    - {ends: [h1, r1], rate: 10 Mbit/s, delay: 5 ms, queue: 20 packets}
    - {ends: [r1, h2], rate: 10 Mbit/s, delay: 5 ms}
flows:
  - {name: bulk, kind: tcp, cc: cubic, from: h1, to: h2}
duration: 2 s
"""


def test_kinds_of_queues_and_what_routers_do_have_their_settings(page: Page, served: Served) -> None:
    opened(page, served, ROUTED, nodes=3)
    page.get_by_label("Link h1-r1").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".inspector h2")).to_have_text("linkh1-r1")
    queue = group(page, "queue")
    queue.get_by_label("kind").select_option("codel")
    expect(queue.get_by_label("target", exact=True)).to_be_visible()
    queue.get_by_label("target", exact=True).fill("10 ms")
    page.keyboard.press("Enter")
    overhead = group(page, "overhead")
    overhead.get_by_label("framing").select_option("ethernet")
    page.locator("[data-node=r1]").click()
    expect(page.locator(".inspector h2")).to_have_text("routerr1")
    expect(page.locator(".inspector").get_by_label("initial_window")).to_have_count(0)
    group(page, "accelerate").get_by_role("button", name="Add accelerate").click()
    expect(page.locator(".cm-content")).to_contain_text("accelerate: {}")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".notice")).to_contain_text("Saved")
    plan: Any = expand(load(served.root / "small.yaml"))
    assert plan["links"][0]["forward"]["queue"]["kind"] == "codel"
    assert plan["links"][0]["forward"]["queue"]["target"] == 10_000_000
    expect(page.get_by_label("Mistakes and warnings")).to_have_count(0)


def group(page: Page, name: str) -> Locator:
    """The settings of this name, opened; not those of a link's directions, which are further below."""
    named = page.locator("> summary", has_text=re.compile(rf"^{name}"))
    outer = ".inspector > .group, .inspector > details:not(.group) > .group"
    found = page.locator(outer).filter(has=named)
    if not found.is_visible():
        page.locator(".inspector > details > summary", has_text="More settings").click()
    found.locator("summary").first.click()
    return found


def test_a_flow_becomes_any_kind_there_is(page: Page, served: Served) -> None:
    opened(page, served)
    page.locator(".arc-label").click()
    kinds = page.locator(".inspector").get_by_label(re.compile(r"^kind"))
    expect(kinds).to_have_value("tcp")
    names = kinds.locator("option").all_inner_texts()
    assert {"tcp", "udp", "request", "http", "echo", "ping"} <= set(names)
    for name in names[1:] + names[:1]:
        kinds.select_option(name)
        expect(page.locator(".cm-content")).to_contain_text(f"kind: {name}")
        # Settings that it must have are there: it can be run.
        expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()
        expect(page.locator(".mistakes .error")).to_have_count(0)
        # Settings that every flow has are among its own.
        expect(page.locator(".inspector").get_by_label("start", exact=True)).to_have_attribute(
            "placeholder", "0 s"
        )


def test_defaults_are_shown(page: Page, served: Served) -> None:
    opened(page, served, ROUTED, nodes=3)
    page.locator("[data-node=h1]").click()
    settings = page.locator(".inspector")
    expect(settings.get_by_label("initial_window")).to_have_attribute("placeholder", "10 packets")
    expect(settings.get_by_label("ecn").locator("option").first).to_have_text("passive (default)")
    page.get_by_label("Link h1-r1").focus()
    page.keyboard.press("Enter")
    queue = group(page, "queue")
    queue.get_by_label("kind").select_option("codel")
    expect(queue.get_by_label("target", exact=True)).to_have_attribute("placeholder", "5 ms")


def test_a_setting_is_described_to_those_who_use_no_pointer(page: Page, served: Served) -> None:
    opened(page, served)
    page.locator(".arc-label").click()
    start = page.get_by_label("start", exact=True)
    about = page.locator(".described", has=start).locator(".about")
    expect(about).to_be_hidden()
    start.focus()
    expect(about).to_be_visible()
    expect(about).to_have_text("When the flow starts.")
    # A description, not a part of the name.
    expect(start).to_have_accessible_name("start")
    expect(start).to_have_accessible_description("When the flow starts.")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(about).to_be_hidden()
    # Of every control in the settings, those that are folded too.
    lacking = page.evaluate(
        """() => [...document.querySelectorAll(
                '.inspector .setting input, .inspector .setting select, .inspector .group > summary')]
            .filter((one) => !one.closest('.ends') && !(one.getAttribute('aria-describedby') ?? '').split(' ')
                .some((id) => document.getElementById(id)?.textContent))
            .map((one) => one.closest('.setting, .group').textContent)"""
    )
    assert lacking == ["name"]


def test_the_phases_of_controls_have_a_legend(page: Page, served: Served) -> None:
    opened(page, served)
    page.get_by_role("button", name="Phases").click()
    phases = page.get_by_role("list", name="Phases of bulk")
    expect(phases).to_contain_text("SLOW_START")
    colours = phases.locator(".swatch").evaluate_all("(all) => all.map((one) => one.style.background)")
    assert len(colours) == len(set(colours)) > 1


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
"""


def test_topologies_of_other_tools_are_opened(page: Page, served: Served) -> None:
    page.goto(served.key)
    for name, text, nodes in (("old.mn", MINIEDIT, 3), ("pair.clab.yml", CONTAINERLAB, 2)):
        open_file(page, name, text)
        expect(page.locator(".device")).to_have_count(nodes)
        expect(page.locator(".arc-label")).to_contain_text("probe")
    open_file(page, "broken.mn", "not MiniEdit's")
    expect(page.locator(".notice")).to_contain_text("broken.mn")
    # The drawing stayed.
    expect(page.locator(".device")).to_have_count(2)


def open_file(page: Page, name: str, text: str) -> None:
    page.get_by_text("New", exact=True).click()
    page.get_by_label("Open a file").set_input_files(
        FilePayload(name=name, mimeType="", buffer=text.encode())
    )


def test_a_study_fills_its_grid(page: Page, served: Served) -> None:
    (served.root / "small.yaml").write_text(SCENARIO)
    (served.root / "grid.yaml").write_text(
        "tcplab: 1\nstudy: grid\nscenario: small.yaml\n"
        "grid:\n  cc: {set: flows.bulk.cc, values: [reno, cubic]}\nrepeat: 1\n"
    )
    page.goto(served.key)
    page.get_by_role("button", name="Run the study grid.yaml").click()
    expect(page.locator(".heat td")).to_have_count(2)
    expect(page.locator(".study [role=status]")).to_contain_text("done")
    with page.expect_download() as started:
        page.get_by_role("link", name="Download report").click()
    assert "<html" in started.value.path().read_text(encoding="utf-8").lower()
    page.locator(".heat td button").first.click()
    expect(page.get_by_label("Summary")).to_contain_text("bulk")


def test_a_study_shows_each_cell_as_its_runs_end(page: Page, served: Served) -> None:
    (served.root / "small.yaml").write_text(SCENARIO + "sample: {sockets: off, queues: off, flows: 1 s}\n")
    (served.root / "grid.yaml").write_text(
        "tcplab: 1\nstudy: grid\nscenario: small.yaml\n"
        "grid:\n  length: {set: duration, values: [2 s, 1000000 s]}\nrepeat: 1\n"
    )
    page.goto(served.key)
    page.get_by_role("button", name="Run the study grid.yaml").click()
    # The short run has its figure while the other, which would last for ever, has none.
    short, long = page.locator(".heat td").first, page.locator(".heat td").last
    expect(short).to_contain_text("bit/s")
    expect(long).to_have_text("0 of 1 run")
    expect(page.get_by_label("Progress of the study")).to_be_visible()
    page.get_by_role("button", name="Stop").first.click()
    expect(page.locator(".study [role=status]")).to_contain_text("interrupted")
    expect(short).to_contain_text("bit/s")
    # Resumed, it makes what is missing: the other run alone.
    resume = page.get_by_role("button", name="Resume: 1 run is missing")
    expect(resume).to_be_enabled()
    resume.click()
    expect(page.get_by_label("Progress of the study")).to_be_visible()
    expect(page.locator(".study [role=status]")).to_contain_text("0 of 1 runs")
    page.get_by_role("button", name="Stop").first.click()
    expect(page.locator(".study [role=status]")).to_contain_text("interrupted")
