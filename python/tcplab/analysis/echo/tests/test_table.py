"""The table as published, and its CSV and JSON."""

import csv
import io
import json

import numpy as np
import pytest

from tcplab.analysis.echo import Echoes, Series, csv_text, document, statistics, tables


def example(warmup: int = 0) -> Echoes:
    series = [
        Series(client, size, np.array([2e6, 1e6, 1e6, 1e6]) * (1 + client))
        for client in (0, 1)
        for size in (1, 65536)
    ]
    return statistics(series, clients=2, iterations=4, warmup=warmup)


def test_the_study_s_rows_stand_in_ms_under_the_sizes() -> None:
    english, portuguese = (tables(example(), labels)[0] for labels in ("en", "pt"))
    assert english.lines(80) == [
        "TCP/2/4       1   65536",
        "mean     1.8750  1.8750",
        "sd       0.9910  0.9910",
        "lower    0.8246  0.8246",
        "upper    2.9254  2.9254",
    ]
    assert [name for name, _ in portuguese.rows] == ["MED", "DVP", "LOW", "UPP"]


def test_with_a_warm_up_both_numbers_are_shown() -> None:
    rows = dict(tables(example(warmup=1))[0].rows)
    assert (rows["mean"][0], rows["mean, all"][0]) == ("1.5000", "1.8750")


def test_wide_tables_continue_below() -> None:
    lines = tables(example())[0].lines(16)
    assert lines[:2] == ["TCP/2/4       1", "mean     1.8750"]
    assert lines[6:8] == ["TCP/2/4   65536", "mean     1.8750"]


def test_each_client_has_a_row() -> None:
    clients = tables(example())[2]
    assert clients.rows == (("client 0", ("1.2500", "1.2500")), ("client 1", ("2.5000", "2.5000")))


def test_csv_and_json_hold_the_same_figures() -> None:
    rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(csv_text(example(), "pt")))}
    assert rows["TCP/2/4"] == ["1", "65536"]
    data = json.loads(json.dumps(document(example())))
    assert float(rows["MED"][1]) * 1e6 == data["sizes"][1]["mean"]
    assert data["series"][0]["histogram"] == [[1e6, 3], [2e6, 1]]
    assert sum(count for _, count in data["series"][3]["histogram"]) == 4


def test_a_column_goes_below_when_the_gap_before_it_does_not_fit() -> None:
    table = tables(example())[0]
    whole = len(table.lines(200)[0])
    assert len(table.lines(whole)) == 5
    assert len(table.lines(whole - 1)) == 11


def test_further_rows_are_under_their_names() -> None:
    values = np.arange(1.0, 10_001.0) * 1e3
    echoes = statistics([Series(0, 1000, values)], clients=1, iterations=10_000)
    rows = {name: row[0] for name, row in tables(echoes)[1].rows}
    found = [float(rows[name]) for name in ("median", "p90", "p99", "p99.9", "max", "first")]
    assert found == pytest.approx([5, 9, 9.9, 9.99, 10, 0.001], abs=0.001)


def test_json_has_both_with_a_warm_up_and_every_left_out_round_trip() -> None:
    values = np.array([*[9e6] * 120, *[1e6] * 80])
    echoes = statistics([Series(0, 8, values)], clients=1, iterations=200, warmup=120)
    data = document(echoes)
    assert data["sizes"][0]["mean"] == 1e6
    assert data["with_warmup"][0]["mean"] == values.mean()
    assert data["series"][0]["first"] == [9e6] * 120
    rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(csv_text(echoes)))}
    assert float(rows["bit/s"][0]) == data["sizes"][0]["throughput"] == 1000 * 8 * 8
    assert document(example())["with_warmup"] is None


def test_a_clients_mean_leaves_out_the_warm_up() -> None:
    clients = tables(example(warmup=1))[2]
    assert clients.rows == (("client 0", ("1.0000", "1.0000")), ("client 1", ("2.0000", "2.0000")))
