"""The settings of nodes, links and flows."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page, expect

from tcplab.scenario import expand, load

from .conftest import Served
from .steps import group, opened

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
    expect(page.get_by_label("Errors and warnings")).to_have_count(0)


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


def test_settings_of_a_queue_that_is_a_bare_kind(page: Page, served: Served) -> None:
    text = ROUTED.replace("queue: 20 packets", "queue: codel")
    assert text != ROUTED
    opened(page, served, text, nodes=3)
    page.get_by_label("Link h1-r1").focus()
    page.keyboard.press("Enter")
    queue = group(page, "queue")
    expect(queue.get_by_label("kind")).to_have_value("codel")
    queue.get_by_label("target", exact=True).fill("10 ms")
    page.keyboard.press("Enter")
    expect(page.locator(".cm-content")).to_contain_text("queue: {kind: codel, target: 10 ms}")
    expect(page.get_by_label("Errors and warnings")).to_have_count(0)


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


def test_a_real_host_has_its_address_among_its_settings(page: Page, served: Served) -> None:
    opened(page, served)
    page.get_by_label("Engine").select_option("remote")
    problems = page.get_by_role("list", name="Errors and warnings")
    expect(problems).to_contain_text("no address is given for the host left")
    expect(problems).to_contain_text("network.hosts_at.left: ssh://USER@HOST")
    expect(problems).not_to_contain_text("--at")
    for name in ("left", "right"):
        page.locator(f"[data-node={name}]").click()
        page.get_by_label("hosts_at", exact=True).fill(f"ssh://{name}.example")
        page.keyboard.press("Enter")
    expect(page.locator(".cm-content")).to_contain_text("ssh://right.example")
    expect(problems).not_to_contain_text("no address is given")


def test_a_wrong_value_comes_with_a_right_one(page: Page, served: Served) -> None:
    opened(page, served)
    page.locator(".arc-label").click()
    start = page.get_by_label("start", exact=True)
    expect(start).to_have_attribute("placeholder", "0 s")
    start.fill("5 parsecs")
    expect(start).to_have_accessible_description(re.compile(r"Not a start: e.g. 25\sms"))


def test_a_name_that_another_node_has_is_rejected(page: Page, served: Served) -> None:
    opened(page, served)
    page.get_by_role("toolbar", name="Draw").get_by_role("button", name="Host").click()
    expect(page.locator(".device")).to_have_count(3)
    name = page.get_by_label("name", exact=True)
    name.fill("left")
    page.keyboard.press("Enter")
    expect(page.locator(".inspector .bad")).to_have_text("Another node has this name")
    expect(page.locator("input[aria-invalid=true]")).to_have_value("left")
    expect(page.locator("[data-node=h1]")).to_have_count(1)
