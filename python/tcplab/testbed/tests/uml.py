"""A second Linux on this machine, with the modules that the machine's own may lack: User-mode Linux.

Debian's package has sch_netem and its like as modules, boots in seconds from the machine's own files, and
needs neither privileges nor virtualisation. It sees the machine's files, and can change those of one folder.
In virtual time its clock advances only while it is idle: what happens there is the same on any machine.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import tcplab

_MODULES = Path("/usr/lib/uml/modules")
_ARGUMENTS = ["root=/dev/root", "rootfstype=hostfs", "ro", "mem=512M", "con=null", "con0=fd:0,fd:1", "quiet"]
_INIT = """\
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmp /run
mount -t hostfs -o {folder} none {folder}
mkdir -p /run/machine/lib
ln -s {modules} /run/machine/lib/modules
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/run TMPDIR=/run
export PYTHONPATH={packages} PYTHONDONTWRITEBYTECODE=1
for module in {names}; do modprobe -d /run/machine "$module"; done
ip link set lo up
cd {folder}
touch booted
{command} >said 2>&1
echo $? >code
exec {python} -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321FEDC)'
"""


def missing() -> str | None:
    """Why there is none; none if there is."""
    if platform.machine() != "x86_64":
        return f"User-mode Linux is for x86_64, and this is {platform.machine()}"
    if shutil.which("linux.uml") is None or not _MODULES.is_dir():
        return "User-mode Linux is not installed: sudo apt-get install user-mode-linux"
    if shutil.which("modprobe", path="/usr/sbin:/sbin") is None:
        return "modprobe is not installed: sudo apt-get install kmod"
    if shutil.which("cc") is None:
        return "there is no C compiler: sudo apt-get install build-essential"
    return None


def run(
    command: list[str], folder: Path, modules: list[str], *, seconds: float, virtual_time: bool = False
) -> tuple[int, str]:
    """Boot, run a command in a folder with modules loaded, and power off: its exit code and what it said."""
    environment = {**os.environ, "TMPDIR": str(folder), "LD_PRELOAD": _preload("xstate", folder)}
    if virtual_time:
        environment["LD_PRELOAD"] += f" {_preload('clock', folder)}"
        environment["VIRTUAL_CLOCK"] = str(folder / "booted")
    for left_over in ("booted", "said", "code"):
        (folder / left_over).unlink(missing_ok=True)
    init = folder / "init"
    text = _INIT.format(
        folder=shlex.quote(str(folder)),
        modules=_MODULES,
        packages=shlex.quote(str(Path(tcplab.__file__).parents[1])),
        names=" ".join(modules),
        command=shlex.join(command),
        python=shlex.quote(sys.executable),
    )
    init.write_text(text, encoding="utf-8")
    init.chmod(0o755)
    words = ["linux.uml", *_ARGUMENTS, f"init={init}", f"uml_dir={folder}"]
    booted = subprocess.Popen(
        words,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=_alone,
    )
    try:
        console, _ = booted.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(booted.pid, signal.SIGKILL)
        console, _ = booted.communicate()
        console += f"\nended after {seconds:g} s"
    said, code = folder / "said", folder / "code"
    output = said.read_text(encoding="utf-8", errors="replace") if said.exists() else ""
    if not code.exists():
        return -1, f"{console}\n{output}"
    return int(code.read_text(encoding="ascii")), output


def answers(guest: Path, cases: list[Any], folder: Path, modules: list[str], *, seconds: float = 900) -> Any:
    """Results by case of a program run there in virtual time: `GUEST CASES RESULTS`, both JSON files.

    A boot is ended after so many `seconds`.
    """
    (folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    command = [sys.executable, str(guest), "cases.json", "results.json"]
    code, said = run(command, folder, modules, seconds=seconds, virtual_time=True)
    assert code == 0, said
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))


def _preload(name: str, folder: Path) -> str:
    """A library of ours that changes what the kernel asks of this machine, compiled into a folder."""
    library = folder / f"{name}.so"
    source = Path(__file__).with_name(f"uml-{name}.c")
    subprocess.run(["cc", "-O", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return str(library)


def _alone() -> None:
    """A session of its own, so that all its processes can be ended together; it ends with us.

    On one CPU: its processes wake each other all the time, which takes over twice as long from another.
    """
    os.setsid()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
