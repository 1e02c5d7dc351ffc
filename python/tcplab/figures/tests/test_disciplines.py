"""The figure of what queue disciplines show of themselves."""

from pathlib import Path

import tcplab
from tcplab.figures.runs.disciplines import disciplines


def panels(
    tmp_path: Path, name: str, network: dict[str, object], start: str, end: str
) -> dict[str, list[str]]:
    """The gauges by the title of their panel."""
    flow = {"name": "bulk", "kind": "tcp", "from": start, "to": end}
    asked = {"tcplab": 1, "name": name, "network": network, "flows": [flow], "duration": "500 ms"}
    drawn = disciplines(tcplab.run(asked, output=tmp_path / name)).panels
    return {f"{panel.title} ({panel.unit})": [line.key for line in panel.lines] for panel in drawn}


def test_only_drops_are_called_drops(tmp_path: Path) -> None:
    red = {"kind": "red", "limit": "100 packets", "min": "10 packets", "max": "30 packets"}
    path = {"rate": "10 Mbit/s", "rtt": "20 ms", "queue": red}
    assert panels(tmp_path, "red", {"path": path}, "left", "right") == {
        "State (packets)": ["average"],
        "Drops so far (packets)": ["early_drop", "overlimit"],
        "State ()": ["max_p"],
    }
    wifi = {
        "nodes": ["ap", "station"],
        "media": ["wifi"],
        "links": [{"ends": ["ap", "station"], "rate": "50 Mbit/s", "medium": "wifi"}],
    }
    found = panels(tmp_path, "wifi", wifi, "ap", "station")
    assert not any("Drops" in title for title in found)
    assert ["retransmitted"] in found.values()
