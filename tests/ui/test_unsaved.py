"""Changes that are not saved: kept, listed, and never lost to another hand's or to another document."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from .conftest import Served
from .steps import SCENARIO, opened, reads, settled, write

MINE = SCENARIO.replace("reno", "vegas")
THEIRS = SCENARIO.replace("reno", "bbr1")


def files(page: Page) -> None:
    page.get_by_role("tab", name="Files").click()


def choose(page: Page, name: str) -> None:
    files(page)
    page.get_by_role("button", name=name, exact=True).click()


def draw_a_host(page: Page) -> None:
    page.get_by_role("toolbar", name="Draw").get_by_role("button", name="Host").click()


def fresh(page: Page, what: str) -> None:
    files(page)
    page.get_by_text("New", exact=True).click()
    page.get_by_role("button", name=what).click()


def test_a_drawing_that_is_not_saved_outlives_others(page: Page, served: Served) -> None:
    opened(page, served)
    fresh(page, "Empty canvas")
    draw_a_host(page)
    expect(page.locator(".device")).to_have_count(1)
    fresh(page, "Empty canvas")
    expect(page.locator(".device")).to_have_count(0)
    expect(page.locator(".filename")).to_have_text(re.compile("untitled-2.yaml"))
    choose(page, "small")
    expect(page.locator(".device")).to_have_count(2)
    page.reload()
    choose(page, "untitled not saved")
    expect(page.locator(".device")).to_have_count(1)
    # The last document is shown again, whether it is a file or not.
    page.reload()
    expect(page.locator(".filename")).to_have_text(re.compile("^untitled.yaml"))
    expect(page.locator(".device")).to_have_count(1)
    files(page)
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Discard untitled.yaml").click()
    expect(page.locator(".device")).to_have_count(0)
    expect(page.get_by_text("not saved", exact=True)).to_have_count(0)


def test_a_scenario_is_saved_under_its_name(page: Page, served: Served) -> None:
    page.goto(served.key)
    page.locator(".starts").get_by_role("button", name="dumbbell").click()
    settled(page)
    page.keyboard.press("Control+s")
    expect(page.get_by_label("File name")).to_have_value("dumbbell.yaml")
    page.keyboard.press("Enter")
    expect(page.locator(".notice")).to_contain_text("Saved dumbbell.yaml")
    # A drawing takes the name of its file, and its results do too.
    fresh(page, "Empty canvas")
    draw_a_host(page)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_label("File name")).to_have_value("untitled.yaml")
    page.get_by_label("File name").fill("mine")
    page.keyboard.press("Enter")
    expect(page.locator(".notice").last).to_contain_text("Saved mine.yaml")
    assert "name: mine" in (served.root / "mine.yaml").read_text()


def test_a_template_that_is_only_looked_at_is_not_kept(page: Page, served: Served) -> None:
    opened(page, served)
    fresh(page, "dumbbell")
    settled(page)
    choose(page, "small")
    expect(page.get_by_text("not saved", exact=True)).to_have_count(0)


def test_changes_of_a_file_that_another_hand_has_changed_are_not_lost(page: Page, served: Served) -> None:
    opened(page, served)
    (served.root / "other.yaml").write_text(SCENARIO.replace("small", "other"))
    write(page, MINE)
    expect(page.locator(".arc-label")).to_have_text("bulk · vegas")
    choose(page, "other")
    expect(page.locator(".arc-label")).to_have_text("bulk · reno")
    (served.root / "small.yaml").write_text(THEIRS)
    choose(page, "small")
    expect(page.get_by_role("alert")).to_contain_text("small.yaml was changed elsewhere")
    reads(page, MINE)
    page.get_by_role("button", name="Load the other version").click()
    reads(page, THEIRS)
    page.get_by_role("button", name="Undo").click()
    reads(page, MINE)


@pytest.mark.refused("/api/file")
def test_a_name_that_is_taken_changes_nothing_about_the_open_file(page: Page, served: Served) -> None:
    (served.root / "taken.yaml").write_text(THEIRS)
    opened(page, served)
    page.locator(".filename").click()
    page.get_by_label("File name").fill("taken")
    page.keyboard.press("Enter")
    expect(page.locator(".notice")).to_contain_text("taken.yaml is there already")
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.locator(".filename")).to_be_focused()
    assert (served.root / "taken.yaml").read_text() == THEIRS


@pytest.mark.refused("/api/file")
def test_a_file_that_was_removed_is_written_again(page: Page, served: Served) -> None:
    opened(page, served)
    (served.root / "small.yaml").unlink()
    expect(page.locator(".notice")).to_contain_text("small.yaml was removed")
    # It is kept in the browser as any document that is not a file.
    page.reload()
    reads(page, SCENARIO)
    page.keyboard.press("Control+s")
    expect(page.locator(".notice")).to_contain_text("Saved small.yaml")
    assert (served.root / "small.yaml").read_text() == SCENARIO


@pytest.mark.refused("/api/file")
def test_a_file_that_is_saved_again_is_no_longer_said_to_be_removed(page: Page, served: Served) -> None:
    opened(page, served)
    (served.root / "small.yaml").unlink()
    expect(page.locator(".notice")).to_contain_text("small.yaml was removed")
    page.keyboard.press("Control+s")
    expect(page.get_by_text("Saved small.yaml")).to_be_visible()
    expect(page.get_by_text("small.yaml was removed")).to_have_count(0)


@pytest.mark.refused("/api/file")
def test_a_file_that_was_removed_and_comes_back_is_followed(page: Page, served: Served) -> None:
    opened(page, served)
    (served.root / "small.yaml").unlink()
    expect(page.locator(".notice")).to_contain_text("small.yaml was removed")
    (served.root / "small.yaml").write_text(THEIRS)
    expect(page.get_by_role("alert")).to_contain_text("small.yaml was changed elsewhere")
    page.get_by_role("button", name="Load the other version").click()
    reads(page, THEIRS)


def test_nodes_that_another_page_moves_move_here(page: Page, served: Served) -> None:
    opened(page, served)
    other = page.context.new_page()
    other.goto(served.key)
    choose(other, "small")
    settled(other)
    where = "node => node.style.transform"
    there = other.locator(".react-flow__node[data-id=left]")
    page.locator("[data-node=left]").click()
    for _ in range(5):
        page.keyboard.press("ArrowUp")
    page.keyboard.press("Control+s")
    expect(page.locator(".notice")).to_contain_text("Saved small.yaml")
    here = page.locator(".react-flow__node[data-id=left]").evaluate(where)
    expect(there).to_have_attribute("style", re.compile(re.escape(here)))
    other.close()


def test_drafts_are_of_one_directory(page: Page, served: Served, tmp_path: Path) -> None:
    opened(page, served)
    write(page, MINE)
    expect(page.locator(".arc-label")).to_have_text("bulk · vegas")
    served.stop()
    served.root = tmp_path / "another"
    served.root.mkdir()
    # The first page asks for its file as soon as the server is back.
    (served.root / "small.yaml").write_text(SCENARIO)
    served.start()
    other = page.context.new_page()
    opened(other, served)
    reads(other, SCENARIO)
    expect(other.get_by_role("alert")).to_have_count(0)
    other.close()


def test_a_file_with_two_characters_at_line_ends_is_edited_in_place(page: Page, served: Served) -> None:
    (served.root / "windows.yaml").write_bytes(SCENARIO.replace("\n", "\r\n").encode())
    opened(page, served)
    choose(page, "windows")
    expect(page.locator(".filename")).to_have_text("windows.yaml")
    draw_a_host(page)
    expect(page.locator(".device")).to_have_count(3)
    page.keyboard.press("Control+s")
    expect(page.locator(".notice")).to_contain_text("Saved windows.yaml")
    written = (served.root / "windows.yaml").read_bytes()
    assert written.count(b"\r\n") == written.count(b"\n")
