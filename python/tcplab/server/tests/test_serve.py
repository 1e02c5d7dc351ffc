"""The server's end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path
from threading import Thread

# The server, whose check of a text takes long, and says when it begins.
SLOW = """
import runpy, time
from tcplab.server import library
def slow(*_, **__):
    print("asked", flush=True)
    time.sleep(6)
library.check = slow
runpy.run_module("tcplab", run_name="__main__")
"""


def test_ctrl_c_during_a_long_request_prints_no_traceback(tmp_path: Path) -> None:
    server = subprocess.Popen(
        [sys.executable, "-c", SLOW, "ui", str(tmp_path), "--no-browser", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TCPLAB_UI_TOKEN": "token"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert server.stdout is not None
    server.stdout.readline()
    address = server.stdout.readline().split("#")[0].strip()
    asked = urllib.request.Request(
        f"{address}api/check",
        json.dumps({"text": "x"}).encode(),
        {"authorization": "Bearer token", "content-type": "application/json"},
    )

    def ask() -> None:
        with suppress(OSError):
            urllib.request.urlopen(asked)

    client = Thread(target=ask)
    client.start()
    assert "asked\n" in iter(server.stdout.readline, "")
    server.send_signal(signal.SIGINT)
    _, said = server.communicate()
    client.join()
    assert said == "tcplab: interrupted\n"
