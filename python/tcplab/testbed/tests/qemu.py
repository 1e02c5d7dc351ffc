"""Another Linux on this machine, older than its own: a kernel of Debian's in QEMU.

`scripts/setup develop` unpacks the kernel without installing it. QEMU needs no virtualisation, and boots in
seconds. The guest sees the machine's files, and can change those of one folder.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path

import tcplab

_KERNEL = Path(tcplab.__file__).parents[2] / ".tools/old-kernel"
_VIRTIOFSD = Path("/usr/lib/qemu/virtiofsd")
_INIT_C = Path(__file__).with_name("qemu-init.c")
# Modules needed to see the machine's files, each after those that it needs. Kernels have some built in.
_FOR_FILES = (
    *("virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci"),
    *("fuse", "virtiofs"),
)
_MEMORY = "1G"
# How long virtiofsd may take to listen, seconds.
_PATIENCE = 10.0
_INIT = """\
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -o remount,bind,ro /
mount --bind {folder} {folder}
mount -o remount,bind,rw {folder}
mount -t tmpfs tmp /run
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/run TMPDIR=/run PYTHONDONTWRITEBYTECODE=1
for module in {modules}; do insmod "$module"; done
ip link set lo up
cd {folder}
{command} >said 2>&1
echo $? >code
sync
"""


def missing() -> str | None:
    """Why there is none; none if there is."""
    if platform.machine() != "x86_64":
        return f"the kernel is for x86_64, and this is {platform.machine()}"
    for program in ("qemu-system-x86_64", str(_VIRTIOFSD)):
        if shutil.which(program) is None:
            return f"{program} is not installed: sudo apt-get install qemu-system-x86"
    if shutil.which("insmod", path="/usr/sbin:/sbin") is None:
        return "insmod is not installed: sudo apt-get install kmod"
    if shutil.which("cc") is None:
        return "there is no C compiler: sudo apt-get install build-essential"
    if os.geteuid() != 0:
        return "sharing the machine's files needs root"
    if not list(_KERNEL.glob("boot/vmlinuz-*")):
        return f"there is no kernel in {_KERNEL}: scripts/setup develop"
    return None


def release() -> tuple[int, int]:
    """Which Linux it is, by its first two numbers."""
    _, release, *_ = next(_KERNEL.glob("boot/vmlinuz-*")).name.split("-")
    major, minor, *_ = release.split(".")
    return int(major), int(minor)


def run(command: list[str], folder: Path, modules: list[str], *, seconds: float) -> tuple[int, str]:
    """Boot, run a command in a folder with modules loaded, and power off: its exit code and what it said."""
    text = _INIT.format(
        folder=shlex.quote(str(folder)),
        modules=" ".join(shlex.quote(str(_module(name))) for name in modules),
        command=shlex.join(command),
    )
    (folder / "init").write_text(text, encoding="utf-8")
    socket = folder / "files"
    with _Ending() as ending:
        # The guest may keep what it has read: nobody else changes these files meanwhile.
        words = [str(_VIRTIOFSD), f"--socket-path={socket}", "-o", "source=/,sandbox=chroot,cache=always"]
        log = (folder / "virtiofsd.log").open("wb")
        ending.start(words, stdout=log, stderr=log)
        deadline = time.monotonic() + _PATIENCE
        while not socket.exists():
            if time.monotonic() > deadline:
                return -1, (folder / "virtiofsd.log").read_text(encoding="utf-8", errors="replace")
            time.sleep(0.01)
        machine = ending.start(_words(folder, socket), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            console, _ = machine.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            ending.kill(machine)
            console, _ = machine.communicate()
            console += f"\nended after {seconds:g} s".encode()
    said, code = folder / "said", folder / "code"
    output = said.read_text(encoding="utf-8", errors="replace") if said.exists() else ""
    if not code.exists():
        return -1, f"{console.decode(errors='replace')}\n{output}"
    return int(code.read_text(encoding="ascii")), output


def _words(folder: Path, socket: Path) -> list[str]:
    kernel = next(_KERNEL.glob("boot/vmlinuz-*"))
    return [
        "qemu-system-x86_64",
        *("-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", _MEMORY),
        # virtiofsd reads and writes the guest's memory.
        *("-object", f"memory-backend-memfd,id=memory,size={_MEMORY},share=on"),
        *("-numa", "node,memdev=memory", "-chardev", f"socket,id=files,path={socket}"),
        *("-device", "vhost-user-fs-pci,chardev=files,tag=machine"),
        *("-nodefaults", "-display", "none", "-serial", "stdio", "-no-reboot"),
        *("-kernel", str(kernel), "-initrd", str(_initial_files(folder))),
        *("-append", f"console=ttyS0 panic=-1 quiet folder={folder}"),
    ]  # fmt: skip


def _module(name: str) -> Path:
    return next(_KERNEL.glob(f"lib/modules/*/kernel/**/{name}.ko*"))


def _initial_files(folder: Path) -> Path:
    """The files that the kernel starts with: the first process, and modules with their list."""
    first = folder / "first"
    subprocess.run(["cc", "-O", "-static", "-o", str(first), str(_INIT_C)], check=True)
    found = {name: list(_KERNEL.glob(f"lib/modules/*/kernel/**/{name}.ko")) for name in _FOR_FILES}
    modules = {f"{name}.ko": paths[0].read_bytes() for name, paths in found.items() if paths}
    listed = "".join(f"/{name}\n" for name in modules).encode()
    files = {"init": first.read_bytes(), "modules": listed, **modules}
    archive = folder / "initial-files"
    archive.write_bytes(
        b"".join(_entry(name, data) for name, data in files.items()) + _entry("TRAILER!!!", b"")
    )
    return archive


def _entry(name: str, data: bytes) -> bytes:
    """An executable file in cpio's new format, in which a kernel takes its first files (initramfs)."""
    path = name.encode() + b"\0"
    inode = links = 1
    fields = [inode, 0o100755, 0, 0, links, 0, len(data), 0, 0, 0, 0, len(path), 0]
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + path
    return _padded(head) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


class _Ending:
    """Processes that end with the block, or with this process."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, words: list[str], **streams: object) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = subprocess.Popen(  # type: ignore[call-overload]
            words, stdin=subprocess.DEVNULL, preexec_fn=_alone, **streams
        )
        self._started.append(process)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)

    def __enter__(self) -> _Ending:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._started:
            self.kill(process)
            process.wait()


def _alone() -> None:
    """A session of its own, so that all its processes can be ended together; it ends with us."""
    os.setsid()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
