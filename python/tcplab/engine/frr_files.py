"""Configuration files of FRR that a scenario names, read by vtysh(1) before the network is made."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tcplab.engine.base import Problem
from tcplab.plan.types import Plan
from tcplab.testbed.tools import located

# How long reading may take, seconds.
_PATIENCE = 30.0
# As in `line 4: % Unknown command[25]: ip ospf bogus`; the number is FRR's own for the error.
_MISTAKE = re.compile(r"line (?P<line>\d+): % (?P<error>[^:[]+)(?:\[\d+\])?: *(?P<text>.*)")
_LANGUAGE = "its language: https://docs.frrouting.org"


def problems(plan: Plan) -> Iterator[Problem]:
    """The mistakes that FRR finds in the files of a plan's routers; none where FRR is not installed."""
    vtysh = located("vtysh")
    if vtysh is None:
        return
    checked: dict[str, str] = {}
    for node in plan["nodes"]:
        file = (node.get("routing") or {}).get("frr")
        if file is None:
            continue
        text = file["text"]
        if text not in checked:
            checked[text] = _mistakes(vtysh, text)
        if checked[text]:
            where = f"nodes.{node['name']}.frr"
            yield Problem(where, f"{file['file']}: {checked[text]}", _LANGUAGE, is_input=True)


def _mistakes(vtysh: str, text: str) -> str:
    """The message of vtysh on a configuration; empty where it is right."""
    with tempfile.TemporaryDirectory(prefix="tcplab-frr-") as folder:
        file = Path(folder) / "frr.conf"
        file.write_text(text, encoding="utf-8")
        # The machine's own settings of vtysh are not for every user to read, and do not matter here.
        (Path(folder) / "vtysh.conf").touch()
        command = [vtysh, "--config_dir", folder, "-C", "-f", str(file)]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PATIENCE,
            check=False,
        )
    if done.returncode == 0:
        return ""
    said = done.stdout.decode(errors="replace")
    found = [
        f"line {match['line']}: {match['error'].strip().lower()}: {match['text'].strip()}"
        for match in _MISTAKE.finditer(said)
    ]
    return "; ".join(found) or " ".join(said.split())
