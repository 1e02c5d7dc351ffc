import re
from dataclasses import replace
from pathlib import Path

import pytest

from tcplab.present import compare, write_comparison, write_report
from tcplab.present.page import page_environment
from tcplab.present.report import report_html
from tcplab.results import ResultsError, load
from tcplab.results.tests.synthetic import plan, write_result


def visible(page: str) -> str:
    """The page without the plotting library."""
    return re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)


def test_the_report_needs_no_network(tmp_path: Path) -> None:
    page = visible(write_report(load(write_result(tmp_path, plan({"one": "reno"}, seconds=3)))).read_text())
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page)
    assert "@import" not in page
    assert "url(" not in page


def test_the_report_says_what_ran_on_what(tmp_path: Path) -> None:
    page = visible(report_html(load(write_result(tmp_path, plan({"one": "reno"}, seconds=3), repetitions=2))))
    assert "1 flow over 1 link for 3\N{NO-BREAK SPACE}s in the simulator, 2 repetitions (seeds 1, 2)" in page
    assert "10 Mbit/s" in page
    assert "droptail of 50 ms" in page
    assert "No warnings." in page
    assert "run-2/sockets.parquet" in page


def test_headings_of_the_summary_link_to_their_definitions(tmp_path: Path) -> None:
    page = visible(
        report_html(load(write_result(tmp_path, plan({"one": "reno", "two": "cubic"}, seconds=3))))
    )
    linked = re.findall(r'<th[^>]*><a href="#([\w-]+)">([^<]+)</a>', page)
    places = re.findall(r'<dt id="([\w-]+)">', page)
    assert len(set(places)) == len(places)
    assert {place for place, _ in linked} <= set(places)
    assert {"Goodput", "CC", "Retransmitted", "RTT p95", "Utilization", "Dropped", "n", "Grade"} <= {
        label for _, label in linked
    }


def test_a_narrow_window_scrolls_tables_and_not_the_page(tmp_path: Path) -> None:
    page = visible(report_html(load(write_result(tmp_path, plan({"one": "reno"}, seconds=3)))))
    tables = re.findall(r'(<div class="(?:scroll|wide)">)?<table', page)
    assert len(tables) >= 5
    assert all(tables)


def test_names_cannot_break_the_page(tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    page = visible(report_html(load(write_result(tmp_path, plan({evil: "reno"}, seconds=3)))))
    assert evil not in page
    assert "<img" not in page


def test_an_interrupted_run_is_marked(tmp_path: Path) -> None:
    run = load(write_result(tmp_path, plan({"one": "reno"}, seconds=3)))
    run.manifest.status = "interrupted"
    run.manifest.message = "Ctrl-C after 1 s"
    page = visible(report_html(run))
    assert "Repetition 1 was interrupted." in page
    assert "Ctrl-C after 1 s. What follows" in page
    run.manifest.message = "Ctrl-C after 1 s."
    assert "Ctrl-C after 1 s. What follows" in visible(report_html(run))


def test_warnings_and_overload_stand_at_the_top(tmp_path: Path) -> None:
    run = load(write_result(tmp_path, plan({"one": "reno"}, seconds=3)))
    run.manifest.warnings = ["loss is not what was asked"]
    run.manifest.overload = "3 % of departures were late"
    page = visible(report_html(run))
    assert page.index("loss is not what was asked") < page.index("Summary")
    assert page.index("3 % of departures were late") < page.index("Summary")


def test_a_run_that_recorded_nothing_still_has_a_report(tmp_path: Path) -> None:
    (tmp_path / "run-1").mkdir()
    (tmp_path / "run-1" / "plan.yaml").write_text("{name: nothing, flows: [], links: [], nodes: []}\n")
    assert "was interrupted" in report_html(load(tmp_path))


def test_a_report_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    run = load(write_result(tmp_path / "result", plan({"one": "reno"}, seconds=3)))
    with pytest.raises(ResultsError, match="nowhere"):
        write_report(run, tmp_path / "nowhere" / "report.html")


def test_a_comparison_tests_every_figure_of_every_common_flow(tmp_path: Path) -> None:
    made = plan({"one": "reno", "two": "cubic"}, seconds=5)
    runs = [
        load(write_result(tmp_path / name, made, repetitions=3, engine=name)) for name in ("sim", "kernel")
    ]
    found = compare(runs)
    assert found.labels == ("sim", "kernel")
    assert {row.flow for row in found.differences} == {"one", "two"}
    goodput = next(row for row in found.differences if row.metric == "goodput")
    # The same arithmetic made both.
    assert goodput.test.difference.value == 0
    assert goodput.p_adjusted == 1
    assert "All runs executed the same plan." in found.notes
    assert "kernel against sim" in found.to_text()
    assert found.title == "kernel against sim"


def test_a_comparison_overlays_runs_by_line_style(tmp_path: Path) -> None:
    made = plan({"one": "reno", "two": "cubic"}, seconds=5)
    runs = [load(write_result(tmp_path / name, made, engine=name)) for name in ("sim", "kernel")]
    panels = {panel.title: panel.lines for panel in compare(runs).timeseries.panels}
    styles = {line.key: (line.style.color, line.style.dash) for line in panels["Goodput"]}
    assert (styles["one, sim"][1], styles["one, kernel"][1]) == ("solid", "dash")
    # Dashes hide in the samples of a long run: colours differ too, while there are enough.
    assert len({color for color, _ in styles.values()}) == 4
    assert len({line.style.color for line in panels["Queue"]}) == len(panels["Queue"])


def test_a_flow_has_one_colour_in_all_runs_where_colours_are_too_few(tmp_path: Path) -> None:
    made = plan(dict.fromkeys(("one", "two", "three", "four"), "reno"), seconds=5)
    runs = [load(write_result(tmp_path / name, made, engine=name)) for name in ("sim", "kernel")]
    lines = compare(runs).timeseries.panels[0].lines
    styles = {line.key: (line.style.color, line.style.dash) for line in lines}
    assert styles["one, sim"][0] == styles["one, kernel"][0]
    assert (styles["one, sim"][1], styles["one, kernel"][1]) == ("solid", "dash")


def test_runs_of_one_flow_are_compared_by_colour_whatever_its_name(tmp_path: Path) -> None:
    runs = [
        load(write_result(tmp_path / cc, plan({cc: cc}, seconds=5), repetitions=2))
        for cc in ("reno", "cubic")
    ]
    found = compare(runs)
    assert {row.flow for row in found.differences} == {"reno / cubic"}
    assert len({line.style.color for line in found.timeseries.panels[0].lines}) == 2


def test_flows_that_are_not_compared_are_named(tmp_path: Path) -> None:
    shared, only = {"one": "reno"}, [f"f{number}" for number in range(8)]
    runs = [
        load(write_result(tmp_path / name, plan(shared | others, seconds=3)))
        for name, others in (("a", {}), ("b", dict.fromkeys(only, "cubic")))
    ]
    note = "Not compared, because {} has no flow of that name: f0, f1, f2, f3, f4, f5 and 2 more of {}."
    assert note.format("a", "b") in compare(runs).notes
    assert note.format("a", "b") in compare(runs[::-1]).notes
    assert not any(note.startswith("Not compared") for note in compare([runs[0], runs[0]]).notes)


def test_a_comparison_says_what_is_wrong_with_a_run(tmp_path: Path) -> None:
    made = plan({"one": "reno"}, seconds=3)
    runs = [load(write_result(tmp_path / name, made, repetitions=2)) for name in ("a", "b")]
    runs[1].manifests[2] = replace(
        runs[1].manifests[2],
        status="interrupted",
        message="stopped at 1 s of 3 s",
        overload="the CPU was busy",
    )
    notes = compare(runs).notes
    assert "b: run 2 interrupted: stopped at 1 s of 3 s" in notes
    assert "b: run 2 overloaded: the CPU was busy" in notes
    assert not any(note.startswith("a: run") for note in notes)


def test_a_result_without_a_sample_is_not_called_one_with_other_flows(tmp_path: Path) -> None:
    """As of a run that was killed before its tables were written."""
    made = plan({"one": "reno"}, seconds=3)
    runs = [load(write_result(tmp_path / name, made)) for name in ("a", "b")]
    for table in (tmp_path / "b").rglob("*.parquet"):
        table.unlink()
    for pair in (runs, runs[::-1]):
        notes = compare(pair).notes
        assert "b: No flow has a sample: nothing to summarize." in notes
        assert not any(note.startswith(("Differences", "Not compared", "a, b: one")) for note in notes)
        assert not any("of the same name" in note for note in notes)


def test_the_comparison_page_is_written(tmp_path: Path) -> None:
    made = plan({"one": "reno"}, seconds=3)
    runs = [load(write_result(tmp_path / name, made)) for name in ("a", "b")]
    page = visible(write_comparison(runs, tmp_path / "page.html").read_text())
    assert "b against a" in page
    assert "one repetition only" in page
    assert "± is the interval of the mean within that run" in page


def test_comparing_needs_two_runs(tmp_path: Path) -> None:
    run = load(write_result(tmp_path, plan({"one": "reno"}, seconds=3)))
    with pytest.raises(ValueError, match="two runs or more, not 1"):
        compare([run])


def test_every_heading_of_a_studys_table_has_a_definition() -> None:
    from tcplab.present.definitions import anchor
    from tcplab.study.summary import _COLUMNS

    labels = {label for _, label, *_ in _COLUMNS if label not in ("from", "to")}
    assert {
        label for label in labels | {"Change", "Limited by", "Verdict", "n", "Grade"} if not anchor(label)
    } == set()


def test_counts_are_grouped_and_commands_are_code(tmp_path: Path) -> None:
    run = load(write_result(tmp_path, plan({"one": "reno"}, seconds=3)))
    run.manifest.facts["events"] = 1234567
    page = visible(report_html(run))
    assert "<tr><th>Events</th><td>1,234,567</td></tr>" in page
    notes = "".join(re.findall(r'<ul class="notes">.*?</ul>', page, re.DOTALL))
    assert "`" not in notes


def test_a_note_may_name_a_command_and_cannot_break_the_page() -> None:
    from tcplab.present.page import page_environment

    page = page_environment().from_string("{{ note|code }}").render(note="run `a <b>` <i>")
    assert page == "run <code>a &lt;b&gt;</code> &lt;i&gt;"


def test_numbers_stay_with_their_units() -> None:
    text = "98 % in 20 ms at 1.5 Mbit/s of 64 KiB; 2 segments. 5 streams, see `10 ms`"
    kept = "98\xa0% in 20\xa0ms at 1.5\xa0Mbit/s of 64\xa0KiB; 2\xa0segments. 5 streams, see "
    notes = page_environment().from_string(
        '{% from "macros.html.j2" import notes %}{{ notes([text]) }}{{ text }}'
    )
    shown = notes.render(text=text)
    # Elsewhere, as in a scenario that is copied, the text is as written.
    assert f"<li>{kept}<code>10 ms</code></li>" in shown
    assert shown.endswith(text)
