"""The page on this machine's kernel: runs, networks that stay up, terminals, links that change, captures."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

import tcplab
from tcplab.testbed import held
from tcplab.testbed.doctor import Grade, examine

from .conftest import PATIENCE, Served
from .steps import chart, opened
from .test_access import AXE, complaints

expect.set_options(timeout=PATIENCE)

# Names of labs are the machine's: two pages would bring up the same.
pytestmark = pytest.mark.xdist_group("labs")

SCENARIO = """tcplab: 1
name: page-lab
network:
  nodes: [h1, h2]
  links:
    - {ends: [h1, h2], rate: 20 Mbit/s, delay: 5 ms, queue: 50 packets}
flows:
  - {name: bulk, kind: tcp, cc: cubic, from: h1, to: h2}
duration: 600 s
# Whether links do as asked is measured in tests/kernel, and depends on how busy the machine is.
verify: off
"""


@pytest.fixture(scope="module", autouse=True)
def able() -> None:
    """Skip with the reason where the machine does not allow it."""
    missing = [one for one in examine() if one.grade is Grade.MISSING]
    if missing:
        pytest.skip("; ".join(f"{one.name}: {one.message}" for one in missing))


@pytest.fixture
def lab(page: Page, served: Served) -> Iterator[Page]:
    """The page with its network up."""
    with brought_up(page, served, SCENARIO, nodes=2):
        yield page


@contextmanager
def brought_up(page: Page, served: Served, text: str, nodes: int) -> Iterator[None]:
    """The page with the network of a text up, until it is taken down."""
    opened(page, served, text, nodes)
    page.get_by_role("tab", name="Network").click()
    page.get_by_role("button", name="Bring the network up").click()
    expect(page.locator(".lab")).to_be_visible()
    name = str(page.locator(".lab").get_attribute("data-lab"))
    try:
        yield
    finally:
        if name in held.names():
            held.down(name)


def typed(page: Page, text: str) -> None:
    page.locator(".terminal .xterm-helper-textarea").focus()
    page.keyboard.type(text)
    page.keyboard.press("Enter")


def screen(page: Page) -> str:
    return "\n".join(page.locator(".xterm-accessibility-tree > div").all_inner_texts())


def test_a_terminal_in_a_node_reaches_the_other(lab: Page) -> None:
    lab.get_by_role("button", name="Terminal").click()
    expect(lab.locator(".xterm-accessibility-tree")).to_contain_text(re.compile(r"h1[$#]"))
    typed(lab, "hostname; ping -c 1 -W 20 10.0.0.2")
    expect(lab.locator(".xterm-accessibility-tree")).to_contain_text("1 received")
    # Its size is that of the page, and the program is notified of it.
    typed(lab, "stty size")
    rows = int(lab.evaluate("document.querySelectorAll('.xterm-rows > div').length"))
    expect(lab.locator(".xterm-accessibility-tree")).to_contain_text(re.compile(rf"stty size\s*{rows} \d+"))


def test_a_terminal_has_colours_and_is_left_by_a_key(lab: Page) -> None:
    lab.get_by_role("button", name="Terminal").click()
    expect(lab.locator(".xterm-accessibility-tree")).to_contain_text(re.compile(r"h1[$#]"))
    # By number and of 24 bits: the first by a style sheet, the second by a style attribute.
    typed(lab, r"printf '\e[31mby number\e[0m \e[38;2;1;2;3mof 24 bits\e[0m'")
    for text, colour in (("by number", "rgb(204, 0, 0)"), ("of 24 bits", "rgb(1, 2, 3)")):
        expect(lab.locator(".xterm-rows span").get_by_text(text, exact=True)).to_have_css("color", colour)
    lab.keyboard.press("Tab")
    expect(lab.locator(".terminal .xterm-helper-textarea")).to_be_focused()
    lab.keyboard.press("Control+F6")
    expect(lab.get_by_role("tab", name="h1")).to_be_focused()


def test_a_terminal_says_why_it_ended(lab: Page) -> None:
    lab.get_by_role("button", name="Terminal").click()
    expect(lab.locator(".xterm-accessibility-tree")).to_contain_text(re.compile(r"h1[$#]"))
    typed(lab, "exit 7")
    expect(lab.locator(".xterm-accessibility-tree")).to_contain_text("has ended with exit code 7")
    lab.get_by_role("button", name="Terminal").click()
    lab.get_by_role("button", name="Close h1 (2)", exact=True).click()
    lab.get_by_role("button", name="Close h1", exact=True).click()
    lab.get_by_role("button", name="Terminal").click()
    expect(lab.locator(".xterm-accessibility-tree")).to_contain_text(re.compile(r"h1[$#]"))
    typed(lab, "kill -KILL $$")
    expect(lab.locator(".xterm-accessibility-tree")).to_contain_text("was ended by SIGKILL")


def test_a_link_that_changes_shows_in_its_curve(lab: Page) -> None:
    carried = lab.locator(".chart[data-panel=Links] output").first
    lab.get_by_role("button", name="Start the flows").click()
    rate_is(lab, carried, "> 2e6")
    lab.get_by_role("button", name="Change", exact=True).click()
    change = lab.get_by_role("form", name="Change h1-h2")
    expect(change.get_by_label("rate")).to_be_focused()
    assert change.locator("label").all_inner_texts()[:3] == ["rate", "delay", "queue"]
    # All settings and the button are seen, each on one line.
    heights = change.locator("label").evaluate_all("(all) => all.map((one) => one.clientHeight)")
    assert max(heights) < 35, heights
    expect(change.get_by_role("button", name="Change now")).to_be_in_viewport(ratio=1)
    now = {"rate": "20 Mbit/s", "delay": "5 ms", "queue": "droptail of 50 packets", "loss": "none"}
    for name, value in now.items():
        expect(change.get_by_label(name, exact=True)).to_have_attribute("placeholder", value)
    expect(change.get_by_label("up").locator("option").first).to_have_text("on")
    change.get_by_label("rate").fill("1 Mbit/s")
    change.get_by_role("button", name="Change now").click()
    expect(change.get_by_role("status")).to_have_text("h1-h2: rate 1 Mbit/s")
    expect(change.get_by_label("rate")).to_have_attribute("placeholder", "1 Mbit/s")
    rate_is(lab, carried, "< 1.5e6")
    # A setting that the link cannot have is rejected with an error message, and the link keeps what it has.
    change.get_by_label("rate").fill("fast")
    expect(change.get_by_role("button", name="Change now")).to_be_disabled()
    change.get_by_label("rate").fill("")
    change.get_by_label("queue").fill("50 packages")
    wrong = re.compile(r"Not a queue: e.g. 625\spackets")
    expect(change.get_by_label("queue")).to_have_accessible_description(wrong)
    expect(change.get_by_role("button", name="Change now")).to_be_disabled()
    change.get_by_label("direction").select_option("reverse")
    change.get_by_label("queue").fill("9 packets")
    change.get_by_role("button", name="Change now").click()
    expect(change.get_by_label("queue")).to_have_attribute("placeholder", "9 packets")
    change.get_by_label("direction").select_option("both")
    expect(change.get_by_label("queue")).to_have_attribute(
        "placeholder", "droptail of 50 packets; reverse 9 packets"
    )
    # Changes made elsewhere show by themselves, beside what is being typed here.
    change.get_by_label("delay").fill("7 ms")
    elsewhere = [sys.executable, "-m", "tcplab", "topo", "set", "--lab", "page-lab", "h1-h2", "rate=3 Mbit/s"]
    subprocess.run(elsewhere, check=True)
    expect(change.get_by_label("rate")).to_have_attribute("placeholder", "3 Mbit/s")
    expect(change.get_by_label("delay")).to_have_value("7 ms")
    # A link has one such pane.
    lab.get_by_role("button", name="Change", exact=True).click()
    expect(change).to_have_count(1)


def rate_is(page: Page, carried: Locator, wanted: str) -> None:
    """Wait until a link carries what is wanted, bit/s."""
    expect(carried).to_be_visible()
    page.wait_for_function(
        f"() => Number(document.querySelector('.chart[data-panel=Links] output')?.dataset.last) {wanted}"
    )


def test_a_kernel_run_that_is_stopped_shows_what_was_recorded(page: Page, served: Served) -> None:
    # So many packets are not simulated while it is edited: the only curve is the kernel's.
    opened(page, served, SCENARIO.replace("600 s", "6000 s"))
    page.get_by_label("Engine").select_option("kernel")
    page.get_by_role("button", name="Run", exact=True).click()
    goodput = page.locator(".chart[data-panel=Goodput]")
    expect(goodput).to_have_attribute("data-lines", "1")
    page.wait_for_function("() => document.querySelector('progress')?.value > 0")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".chip.run")).to_contain_text("kernel")
    expect(page.locator(".chart[data-panel='Congestion window']")).to_have_attribute("data-lines", "1")
    (result,) = (served.root / "runs").iterdir()
    kept = tcplab.load(result)
    assert kept.status == "interrupted"
    assert kept.tables["sockets"].height > 0


def test_a_page_that_draws_slowly_still_stops_a_run(page: Page, served: Served) -> None:
    """Each redraw takes longer than the time between two reports of the run."""
    opened(page, served, SCENARIO.replace("600 s", "6000 s"))
    page.get_by_label("Engine").select_option("kernel")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(chart(page, "Goodput")).to_have_attribute("data-lines", "1")
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": 20})
    # More reports than such a page draws wait for it.
    page.wait_for_timeout(5000)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".chip.run")).to_contain_text("kernel")


def test_curves_of_a_kernel_run_grow_while_it_goes_on(page: Page, served: Served) -> None:
    times: list[float] = []
    sampled: list[tuple[float, float | None]] = []

    def heard(frame: str | bytes) -> None:
        said = json.loads(frame)
        if said.get("type") == "job" and said["state"] == "running" and said["goodput"]:
            times.append(said["time"])
            if said["cwnd"]:
                sampled.append((said["cwnd"]["bulk"], said["rtt"].get("bulk")))

    page.on("websocket", lambda socket: socket.on("framereceived", heard))
    opened(page, served, SCENARIO.replace("600 s", "6000 s"))
    page.get_by_label("Engine").select_option("kernel")
    page.get_by_role("button", name="Run", exact=True).click()
    goodput = page.locator(".chart[data-panel=Goodput]")
    expect(goodput).to_have_attribute("data-lines", "1")
    # However slow the machine is, the curve has a point more with each message.
    page.wait_for_function(
        "() => Number(document.querySelector('.chart[data-panel=Goodput]')?.dataset.samples) >= 20"
    )
    for panel in ("Congestion window", "Round-trip time"):
        page.wait_for_function(
            "(of) => Number(document.querySelector(`.chart[data-panel='${of}']`)?.dataset.samples) >= 20",
            arg=panel,
        )
    # A report without goodput is a point of the curve, too.
    for _ in range(600):
        if len(times) >= 20:
            break
        page.wait_for_timeout(100)
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".chip.run")).to_contain_text("kernel")
    assert len(times) >= 20
    # Ten packets to begin with, and 5 ms each way.
    assert all(cwnd >= 1 for cwnd, _ in sampled)
    assert all(rtt is None or rtt >= 0.01 for _, rtt in sampled)
    assert any(rtt is not None for _, rtt in sampled)
    assert times == sorted(times)


def test_a_link_is_captured_listed_and_downloaded(lab: Page, tmp_path: Path) -> None:
    lab.get_by_role("button", name="Capture").click()
    lab.get_by_role("button", name="Start the flows").click()
    expect(lab.locator(".packet-list tbody tr").first).to_contain_text("10.0.0.")
    lab.get_by_role("button", name="Flow graph").first.click()
    lab.wait_for_function("() => document.querySelector('.ladder img')?.naturalWidth > 100")
    lab.get_by_role("button", name="Stop", exact=True).click()
    with lab.expect_download() as started:
        lab.get_by_role("link", name="pcapng").click()
    file = tmp_path / "captured.pcapng"
    started.value.save_as(file)
    from tcplab import captures

    assert len(captures.read(file)) >= 1


def test_a_phone_shows_the_curves_and_the_packets_of_a_network(lab: Page) -> None:
    lab.set_viewport_size({"width": 390, "height": 844})
    curves = lab.locator(".lab-curves .chart")
    expect(curves).to_have_count(4)
    widths = curves.evaluate_all("(all) => all.map((one) => one.clientWidth)")
    assert min(widths) > 300, widths
    lab.get_by_role("button", name="Capture").click()
    lab.get_by_role("button", name="Start the flows").click()
    packets = lab.locator(".packet-list")
    expect(packets.locator("tbody tr").first).to_contain_text("10.0.0.")
    box = packets.bounding_box()
    assert box is not None
    assert box["x"] + box["width"] <= 390, box
    assert box["height"] > 200, box
    # Scrolled to the pane that was opened, which stays in view when the state of the simulation takes a line.
    lab.locator(".lower .status").evaluate("(line) => line.style.display = 'none'")
    lab.get_by_role("button", name="Terminal").click()
    expect(lab.locator(".panes")).to_be_in_viewport(ratio=0.99)
    lab.locator(".lower .status").evaluate("(line) => line.style.display = ''")
    expect(lab.locator(".panes")).to_be_in_viewport(ratio=0.99)
    lab.set_viewport_size({"width": 1280, "height": 800})


def test_curves_beside_a_capture_are_wide_enough_to_read(lab: Page) -> None:
    lab.set_viewport_size({"width": 1280, "height": 800})
    lab.get_by_role("button", name="Capture").click()
    plots = lab.locator(".lab-curves .u-over")
    expect(plots).to_have_count(4)
    widths = plots.evaluate_all("(all) => all.map((one) => one.clientWidth)")
    assert min(widths) > 220, widths
    assert lab.locator(".packet-list").evaluate("(list) => list.clientWidth") > 450


def test_curves_beside_a_terminal_of_80_columns_are_wide_enough_to_read(lab: Page) -> None:
    lab.set_viewport_size({"width": 1280, "height": 800})
    lab.get_by_role("button", name="Terminal").click()
    expect(lab.locator(".xterm-accessibility-tree")).to_contain_text(re.compile(r"h1[$#]"))
    plots = lab.locator(".lab-curves .u-over")
    expect(plots).to_have_count(4)
    widths = plots.evaluate_all("(all) => all.map((one) => one.clientWidth)")
    assert min(widths) > 300, widths
    typed(lab, "tput cols")
    found = r"tput cols\s*(\d\d+)"
    expect(lab.locator(".xterm-accessibility-tree")).to_contain_text(re.compile(found))
    columns = re.search(found, screen(lab))
    assert columns is not None
    assert int(columns[1]) >= 80


def test_tools_of_a_network_are_all_seen_on_one_line(lab: Page) -> None:
    lab.set_viewport_size({"width": 1280, "height": 800})
    names = ("Take down", "Start the flows", "Terminal", "Routes", "Capture", "Change")
    tools = [lab.get_by_role("button", name=name, exact=True) for name in names]
    lab.get_by_role("button", name="Terminal").click()
    for tool in tools:
        expect(tool).to_be_in_viewport(ratio=1)
    boxes = [tool.bounding_box() for tool in tools]
    assert len({box["y"] for box in boxes if box is not None}) == 1, boxes


def test_curves_of_a_network_without_tcp_say_what_starts_it(lab: Page) -> None:
    for panel in ("Acknowledged", "Congestion window", "Round-trip time"):
        expect(chart(lab, panel)).to_contain_text("No TCP connection: start the flows")
    lab.get_by_role("button", name="Start the flows").click()
    for panel in ("Acknowledged", "Congestion window", "Round-trip time"):
        expect(chart(lab, panel).locator(".absent")).to_have_count(0)


def test_the_focus_stays_where_a_pane_or_the_network_was(lab: Page) -> None:
    lab.get_by_role("button", name="Capture").click()
    lab.get_by_role("button", name="Routes", exact=True).click()
    lab.get_by_role("button", name="Close h1 routes").click()
    expect(lab.get_by_role("tab", name="h1-h2 packets")).to_be_focused()
    lab.get_by_role("button", name="Close h1-h2 packets").click()
    # Not the tool that ends the network.
    expect(lab.get_by_role("button", name="Terminal")).to_be_focused()
    lab.get_by_role("button", name="Take down").click()
    expect(lab.get_by_role("button", name="Bring the network up")).to_be_focused()
    lab.keyboard.press("Enter")
    expect(lab.get_by_role("button", name="Terminal")).to_be_focused()


def test_the_tab_in_front_and_its_close_button_are_seen_among_many(lab: Page) -> None:
    lab.set_viewport_size({"width": 1280, "height": 800})
    for _ in range(8):
        lab.get_by_role("button", name="Routes", exact=True).click()
    expect(lab.get_by_role("tab", name="h1 routes (8)")).to_be_in_viewport(ratio=0.99)
    close = lab.get_by_role("button", name="Close h1 routes (8)")
    expect(close).to_be_in_viewport(ratio=0.99)
    lab.get_by_role("tab", name="h1 routes", exact=True).click()
    expect(lab.get_by_role("button", name="Close h1 routes", exact=True)).to_be_in_viewport(ratio=0.99)
    # Requests still open when the network goes down would be answered with 404.
    expect(lab.get_by_text("Reading…")).to_have_count(0)


def test_a_network_that_cannot_be_built_yet_says_why(page: Page, served: Served) -> None:
    page.goto(served.key)
    page.get_by_role("tab", name="Network").click()
    expect(page.get_by_role("button", name="Bring the network up")).to_be_disabled()
    expect(page.locator(".lab-begin")).to_contain_text("Draw a network of two nodes or more first.")


def test_what_is_taken_down_is_gone(lab: Page) -> None:
    name = str(lab.locator(".lab").get_attribute("data-lab"))
    listed = [sys.executable, "-m", "tcplab", "topo", "list"]
    assert name in subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    lab.get_by_role("button", name="Routes", exact=True).click()
    expect(lab.get_by_label("Routes of h1")).to_contain_text("10.0.0.1/24")
    if AXE.is_file():
        assert complaints(lab) == []
    lab.get_by_role("button", name="Take down").click()
    expect(lab.get_by_role("button", name="Bring the network up")).to_be_visible()
    assert name not in held.names()


def test_a_lab_that_was_ended_elsewhere_has_no_flows_once_it_is_up_again(page: Page, served: Served) -> None:
    with brought_up(page, served, SCENARIO, nodes=2):
        page.get_by_role("button", name="Start the flows").click()
        expect(page.get_by_role("button", name="Stop the flows")).to_be_visible()
        held.down(str(page.locator(".lab").get_attribute("data-lab")))
        bring = page.get_by_role("button", name="Bring the network up")
        expect(bring).to_be_visible()
        bring.click()
        expect(page.get_by_role("button", name="Start the flows")).to_be_enabled()


def test_curves_of_a_network_go_on_when_the_server_is_back(lab: Page, served: Served) -> None:
    lab.get_by_role("button", name="Start the flows").click()
    expect(lab.locator(".chart[data-panel=Links] output").first).to_be_visible()
    absent = lab.locator(".lab-curves .empty")
    expect(absent).to_have_count(0)
    served.stop(signal.SIGKILL)
    expect(absent).to_be_visible()
    served.start()
    expect(absent).to_have_count(0)
    expect(lab.locator(".lab")).to_be_visible()


# Two routers in one system, which find each other by OSPF and have an iBGP session, and one in another.
TWO_SYSTEMS = """tcplab: 1
name: two-systems
network:
  nodes:
    - h1
    - {name: r1, kind: router, routing: {bgp: {as: 65001}, ospf: {hello_interval: 1 s, dead_interval: 4 s}}}
    - {name: r2, kind: router, routing: {bgp: {as: 65001}, ospf: {hello_interval: 1 s, dead_interval: 4 s}}}
    - {name: r3, kind: router, routing: {bgp: {as: 65002}}}
    - h2
  links:
    - {ends: [h1, r1], rate: 100 Mbit/s}
    - {ends: [r1, r2], rate: 100 Mbit/s, delay: 1 ms}
    - {ends: [r2, r3], rate: 100 Mbit/s, delay: 1 ms}
    - {ends: [r3, h2], rate: 100 Mbit/s}
flows:
  - {name: bulk, kind: tcp, cc: cubic, from: h1, to: h2}
duration: 10 s
verify: off
"""


@pytest.mark.skipif(shutil.which("vtysh") is None, reason="FRR is not installed")
def test_routers_of_two_systems_show_their_neighbours_and_routes(page: Page, served: Served) -> None:
    with brought_up(page, served, TWO_SYSTEMS, nodes=5):
        # Flows wait until there are routes.
        page.get_by_role("button", name="Start the flows").click()
        rate_is(page, page.locator(".chart[data-panel=Links] output").first, "> 1e6")
        expect(page.locator(".notice.bad")).to_have_count(0)
        page.get_by_role("button", name="Stop the flows").click()
        node = page.get_by_label("Node", exact=True)
        node.select_option("h1")
        expect(page.get_by_role("button", name="FRR console")).to_have_count(0)
        node.select_option("r1")
        page.get_by_role("button", name="Routes", exact=True).click()
        routes = page.get_by_label("Routes of r1")
        # Its OSPF neighbour, its iBGP session, and the other system's network by BGP.
        read_until(page, routes, r"show ip ospf neighbor'\n(.*\n)*?.*Full")
        read_until(page, routes, r"show bgp summary'\n(.*\n)*?.*65001")
        read_until(page, routes, r"B>\* 10\.\d+\.\d+\.\d+/\d+ \[200/0\]")
        node.select_option("r3")
        page.get_by_role("button", name="Routes", exact=True).click()
        of_r3 = page.get_by_label("Routes of r3")
        read_until(page, of_r3, r"B>\* 10\.\d+\.\d+\.\d+/\d+ \[20/")
        expect(of_r3).not_to_contain_text("ospf")
        # The console knows the same.
        page.get_by_role("button", name="FRR console").click()
        console = page.locator(".xterm-accessibility-tree")
        expect(console).to_contain_text("r3#")
        typed(page, "show bgp ipv4 unicast summary")
        expect(console).to_contain_text(re.compile(r"local AS number 65002"))
        page.get_by_role("button", name="Close r3 vtysh").click()
        node.select_option("h1")
        page.get_by_role("button", name="Terminal").click()
        name = str(page.locator(".lab").get_attribute("data-lab"))
        [address] = held.find(name).about["nodes"]["h2"]["addresses"]
        expect(console).to_contain_text(re.compile(r"h1[$#]"))
        typed(page, f"ping -c 3 -W 20 {address.split('/')[0]}")
        expect(console).to_contain_text("3 received")


# Two minutes and more, at two readings a second.
MAX_READINGS = 300


def read_until(page: Page, shown: Locator, wanted: str) -> None:
    """Read a node's tables again until they say what is wanted: protocols take their time."""
    again = page.get_by_role("button", name="Refresh").locator("visible=true")
    for _ in range(MAX_READINGS):
        if re.search(wanted, shown.inner_text()) is not None:
            return
        again.click()
        # A router need not be asked more often.
        page.wait_for_timeout(500)
    raise AssertionError(f"{wanted!r} is not in\n{shown.inner_text()}")
