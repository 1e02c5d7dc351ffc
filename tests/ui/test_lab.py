"""The page on this machine's kernel: runs, networks that stay up, terminals, links that change, captures."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

import tcplab
from tcplab.testbed import held
from tcplab.testbed.machine import Grade, examine

from .conftest import PATIENCE, Served
from .test_access import AXE, complaints
from .test_page import opened

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
"""


@pytest.fixture(scope="module", autouse=True)
def able() -> None:
    """Skip with the reason where the machine does not allow it."""
    missing = [one for one in examine() if one.grade is Grade.MISSING]
    if missing:
        pytest.skip("; ".join(f"{one.name}: {one.said}" for one in missing))


@pytest.fixture
def lab(page: Page, served: Served) -> Iterator[Page]:
    """The page with its network up."""
    opened(page, served, SCENARIO)
    page.get_by_role("tab", name="Network").click()
    page.get_by_role("button", name="Bring the network up").click()
    expect(page.locator(".lab")).to_be_visible()
    name = str(page.locator(".lab").get_attribute("data-lab"))
    yield page
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
    # Its size is that of the page, and the program is told of it.
    typed(lab, "stty size")
    rows = int(lab.evaluate("document.querySelectorAll('.xterm-rows > div').length"))
    expect(lab.locator(".xterm-accessibility-tree")).to_contain_text(re.compile(rf"stty size\s*{rows} \d+"))


def test_a_terminal_says_why_it_ended(lab: Page) -> None:
    lab.get_by_role("button", name="Terminal").click()
    expect(lab.locator(".xterm-accessibility-tree")).to_contain_text(re.compile(r"h1[$#]"))
    typed(lab, "exit 7")
    expect(lab.locator(".xterm-accessibility-tree")).to_contain_text("has ended with exit code 7")
    lab.get_by_role("button", name="Close h1").click()
    lab.get_by_role("button", name="Terminal").click()
    expect(lab.locator(".xterm-accessibility-tree")).to_contain_text(re.compile(r"h1[$#]"))
    typed(lab, "kill -KILL $$")
    expect(lab.locator(".xterm-accessibility-tree")).to_contain_text("was ended by SIGKILL")


def test_a_link_that_changes_shows_in_its_curve(lab: Page) -> None:
    carried = lab.locator(".chart[data-panel=Links] output").first
    lab.get_by_role("button", name="Start the flows").click()
    rate_is(lab, carried, "> 2e6")
    change = lab.get_by_role("form", name="Change h1-h2")
    change.get_by_label("rate").fill("1 Mbit/s")
    change.get_by_role("button", name="Change now").click()
    expect(lab.locator(".lab-side [role=status]")).to_have_text("h1-h2: rate 1 Mbit/s")
    rate_is(lab, carried, "< 1.5e6")
    # A setting that the link cannot have is refused in words, and the link keeps what it has.
    change.get_by_label("rate").fill("fast")
    expect(change.get_by_role("button", name="Change now")).to_be_disabled()


def rate_is(page: Page, carried: Locator, wanted: str) -> None:
    """Wait until a link carries what is wanted, bit/s."""
    expect(carried).to_be_visible()
    page.wait_for_function(f"(one) => Number(one.dataset.last) {wanted}", arg=carried.element_handle())


def test_a_kernel_run_that_is_stopped_shows_what_was_recorded(page: Page, served: Served) -> None:
    # So many packets are not simulated while it is edited: the only curve is the kernel's.
    opened(page, served, SCENARIO.replace("600 s", "6000 s"))
    page.get_by_label("Engine").select_option("kernel")
    page.get_by_role("button", name="Run", exact=True).click()
    goodput = page.locator(".chart[data-panel=Goodput]")
    expect(goodput).to_have_attribute("data-lines", "1")
    progress = page.get_by_label("Progress of page-lab")
    page.wait_for_function("(one) => one.value > 0", arg=progress.element_handle())
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".chip.run")).to_contain_text("kernel")
    expect(page.locator(".chart[data-panel='Congestion window']")).to_have_attribute("data-lines", "1")
    (result,) = (served.root / "runs").iterdir()
    kept = tcplab.load(result)
    assert kept.status == "interrupted"
    assert kept.tables["sockets"].height > 0


def test_a_link_is_captured_listed_and_downloaded(lab: Page, tmp_path: Path) -> None:
    lab.get_by_role("button", name="Capture").click()
    lab.get_by_role("button", name="Start the flows").click()
    expect(lab.locator(".packet-list tbody tr").first).to_contain_text("10.0.0.")
    lab.get_by_role("button", name="as a ladder").first.click()
    image = lab.locator(".ladder img")
    while not image.evaluate("(one) => one.naturalWidth > 100"):
        lab.wait_for_timeout(100)
    lab.get_by_role("button", name="Stop", exact=True).click()
    with lab.expect_download() as started:
        lab.get_by_role("link", name="pcapng").click()
    file = tmp_path / "captured.pcapng"
    started.value.save_as(file)
    from tcplab import captures

    assert len(captures.read(file)) >= 1


def test_what_is_taken_down_is_gone(lab: Page) -> None:
    name = str(lab.locator(".lab").get_attribute("data-lab"))
    listed = [sys.executable, "-m", "tcplab", "topo", "list"]
    assert name in subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    lab.get_by_role("button", name="Routes").click()
    expect(lab.get_by_label("Routes of h1")).to_contain_text("10.0.0.1/24")
    if AXE.is_file():
        assert complaints(lab) == []
    lab.get_by_role("button", name="Take down").click()
    expect(lab.get_by_role("button", name="Bring the network up")).to_be_visible()
    assert name not in held.names()
