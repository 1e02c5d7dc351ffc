"""The table as published, and its CSV and JSON."""

import csv
import io
import json

import numpy as np

from tcplab.echo import Echoes, Series, csv_text, document, statistics, tables


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
