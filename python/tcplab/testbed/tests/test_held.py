"""Labs that stay up, as their sockets show them."""

from __future__ import annotations

import os
import socket
import threading
import time

from tcplab.testbed import held

NAME = f"slow-{os.getpid()}"


def test_down_returns_when_the_name_is_free() -> None:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(f"\0tcplab-lab/{os.geteuid()}/{NAME}")
    listener.listen()

    def lab() -> None:
        """Close the connection first, and the listening socket well after it."""
        one, _ = listener.accept()
        one.recv(4096)
        one.close()
        time.sleep(0.2)
        listener.close()

    process = threading.Thread(target=lab)
    process.start()
    assert NAME in held.names()
    held.down(NAME)
    assert NAME not in held.names()
    process.join()
