"""`python -m tcplab.server.labs.list_packets`: lists a capture's packets, a line of JSON each."""

from __future__ import annotations

import json
import sys


def main() -> int:
    """List the packets of standard input as they come."""
    from tcplab import _core
    from tcplab.captures.listing import ROW

    packets = _core.PacketList(None, None, 0)
    while rows := packets.rows(1):
        sys.stdout.write(json.dumps(dict(zip(ROW, rows[0], strict=True))) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
