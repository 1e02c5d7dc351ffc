"""Objects fetched over HTTP, from rows whose answer is known."""

from pathlib import Path

from tcplab.analysis.fetches import fetches
from tcplab.analysis.tests.test_samples import recorded
from tcplab.results.tests.synthetic import MS


def test_the_percentile_is_the_least_time_that_so_many_objects_do_not_exceed(tmp_path: Path) -> None:
    """As every other percentile: of 12 objects the slowest, since 11 are fewer than 95 %."""
    rows = [
        {
            "flow": "web",
            "stream": 0,
            "page": page,
            "object": 0,
            "size": 1000,
            "offset": 0,
            "bytes": 1000,
            "time": 0,
            "first_byte": MS,
            "duration": page * MS,
        }
        for page in range(1, 13)
    ]
    (row,) = fetches(recorded(tmp_path, fetches=rows), 0.95)
    assert row.completion_p95.value == 12 * MS
