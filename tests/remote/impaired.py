"""A run with `impair: on` between two hosts, on a kernel with netem: `-m remote.impaired FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from .hosts import Host, Hosts, wait_for
from .running import Run

SCENARIO = """
tcplab: 1
name: impaired
network:
  path: {rate: 10 Mbit/s, rtt: 20 ms, queue: 50 packets}
flows:
  - {name: ping, kind: ping, interval: 20 ms, duration: 1 s}
  - {name: bulk, kind: tcp, cc: cubic, start: 1.5 s}
duration: 8 s
"""


def main() -> None:
    """Run it; what is left is an error."""
    folder = Path(sys.argv[1]) / "hosts"
    folder.mkdir()
    addresses = {"left": "10.77.0.2", "right": "10.77.0.3"}
    others = [Host(name, address, folder / name) for name, address in addresses.items()]
    hosts = Hosts(folder, **{host.name: host for host in others})
    try:
        hosts.up()
        run = Run(hosts, SCENARIO, at={host.name: f"ssh://{host.address}?impair=on" for host in others})
        code, said = run.end(300)
        sys.stdout.write(said)
        for host in others:
            wait_for(lambda host=host: "netem" not in host.run("tc", "qdisc", "show").stdout)
    finally:
        hosts.down()
    sys.exit(code)


if __name__ == "__main__":
    main()
