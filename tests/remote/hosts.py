"""Hosts with sshd on this machine: each has a network, files and a clock of its own; a bridge joins them.

Each has files of its own where a test looks for what was left: /tmp, /run, /dev/shm and the homes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

SSHD = "/usr/sbin/sshd"
USER = "alice"
ROOT = Path(__file__).parents[2]
_PATIENCE = 20.0
# How the kernel knows a program of another machine (binfmt_misc): by the beginning of its ELF header.
BINFMT = {
    "aarch64": (
        r":qemu-aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00"
        r":\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
        ":/usr/bin/qemu-aarch64-static:F"
    )
}
# A program as root of a user namespace that has all users: a process that stays outside maps them.
_IN_USER_NAMESPACE = """
import ctypes, os, sys
entered = os.pipe()
inside = os.getpid()
if not (outside := os.fork()):
    os.read(entered[0], 1)
    for kind in ("uid", "gid"):
        with open(f"/proc/{inside}/{kind}_map", "w") as map:
            map.write("0 0 65536")
    os._exit(0)
CLONE_NEWUSER = 0x10000000
assert ctypes.CDLL(None).unshare(CLONE_NEWUSER) == 0
os.write(entered[1], b"!")
assert os.waitpid(outside, 0)[1] == 0
os.execvp(sys.argv[1], sys.argv[1:])
"""


def obstacle() -> str | None:
    """Why there can be no hosts here."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "hosts with sshd need root"
    for program in (SSHD, "ssh", "ip", "unshare", "nsenter"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    tried = subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True, check=False)
    return None if tried.returncode == 0 else f"no namespaces: {tried.stderr.decode().strip()}"


@dataclass
class Host:
    """A host; its files are under `folder`, mounted where it expects them."""

    name: str
    address: str
    folder: Path
    ahead: int = 0
    """Seconds that its clock is ahead."""
    room: str = "64m"
    """Size of its /tmp."""
    machine: str | None = None
    """An architecture whose programs it runs, by QEMU, and that it says it is; none: the real one."""
    within: int | None = None
    """A process in whose network namespace it is; none: in one of its own."""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def pid(self) -> int:
        """The process that holds its namespaces."""
        # unshare waits for the shell that it has forked into the time namespace.
        # nsenter became unshare.
        children = Path(f"/proc/{self.processes[0].pid}/task/{self.processes[0].pid}/children")
        return int(children.read_text().split()[0])

    def run(
        self, *command: str, timeout: float = 60.0, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a program there."""
        done = subprocess.run(
            [*self._enter(), *command], capture_output=True, text=True, timeout=timeout, check=False
        )
        assert not check or done.returncode == 0, f"{self.name}: {command}: {done.stderr}"
        return done

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        """Start a program there, which ends with the host."""
        log = (self.folder / f"{Path(command[0]).name}.log").open("wb")
        process = subprocess.Popen(
            [*self._enter(), *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        log.close()
        self.processes.append(process)
        return process

    def boot(self) -> None:
        """Make its namespaces and mounts, and wait until they stand."""
        (self.folder / "home" / USER).mkdir(parents=True)
        (self.folder / "home" / "root").mkdir()
        os.chown(self.folder / "home" / USER, 4001, 4001)
        # Root's home is another here, of which ssh and sshd learn from this file alone.
        passwd = Path("/etc/passwd").read_text(encoding="utf-8").replace(":/root:", ":/tmp/home/root:")
        (self.folder / "passwd").write_text(f"{passwd}{USER}:x:4001:4001::/tmp/home/{USER}:/bin/sh\n")
        (self.folder / "shadow").write_text(f"root:*:1::::::\n{USER}:*:1::::::\n")
        at = self.folder
        script = f"""
            set -e
            mount --make-rprivate /
            mount --bind {at}/passwd /etc/passwd
            mount --bind {at}/shadow /etc/shadow
            mount -t tmpfs -o mode=755 none /run && mkdir /run/sshd
            mkdir -p /dev/shm && mount -t tmpfs -o size=1m none /dev/shm
            mkdir /run/keep && mount --bind {at} /run/keep
            mkdir /run/checkout && mount --rbind {ROOT} /run/checkout
            mount -t tmpfs -o size={self.room},mode=1777 none /tmp
            mkdir /tmp/home && mount --bind /run/keep/home /tmp/home
            # The checkout itself may be under /tmp.
            [ -e {ROOT} ] || {{ mkdir -p {ROOT} && mount --rbind /run/checkout {ROOT}; }}
            echo {self.name} >/proc/sys/kernel/hostname
            echo up >/run/keep/up
            exec sleep 3600
        """
        if self.machine is not None:
            script = self._emulating() + script
        net = ("--net",) if self.within is None else ()
        held = subprocess.Popen(
            [
                *(() if self.within is None else ("nsenter", "-t", str(self.within), "--net", "--")),
                *(() if self.machine is None else (sys.executable, "-c", _IN_USER_NAMESPACE)),
                *("unshare", *net, "--mount", "--uts", *self._time("--time", f"--monotonic={self.ahead}")),
                *("--kill-child", "--fork", "sh", "-c", script),
            ],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.processes.append(held)
        wait_for(lambda: (self.folder / "up").exists() or held.poll() is not None)
        assert held.poll() is None, f"{self.name} does not stand"

    def serve_ssh(self, authorized: str, *settings: str) -> None:
        """Run sshd, with a new key, for those with the key `authorized`."""
        kept = self.folder / "ssh"
        kept.mkdir(exist_ok=True)
        if not (kept / "host").exists():
            keygen(kept / "host")
        (kept / "authorized").write_text(authorized)
        lines = [
            f"ListenAddress {self.address}",
            "HostKey /run/keep/ssh/host",
            "PidFile /run/keep/ssh/pid",
            "AuthorizedKeysFile /run/keep/ssh/authorized",
            "StrictModes no",
            "UsePAM no",
            "PermitRootLogin yes",
            *settings,
        ]
        (kept / "config").write_text("\n".join(lines) + "\n")
        (kept / "pid").unlink(missing_ok=True)
        self.start(SSHD, "-D", "-e", "-f", "/run/keep/ssh/config")
        wait_for((kept / "pid").exists)

    @contextmanager
    def authorized(self, keys: str) -> Iterator[None]:
        """Let other keys in for a while."""
        path = self.folder / "ssh/authorized"
        before = path.read_text()
        path.write_text(keys)
        try:
            yield
        finally:
            path.write_text(before)

    def left(self) -> list[str]:
        """The remains there: files of ours, and processes."""
        mounted = "(", "-path", "/run/keep", "-o", "-path", "/run/checkout", "-o", "-path", str(ROOT), ")"
        places = "/tmp", "/run", "/dev/shm"
        found = self.run("find", *places, *mounted, "-prune", "-o", "-name", "*tcplab*", "-print")
        return [*found.stdout.split(), *self.agents()]

    def agents(self) -> list[str]:
        """Command lines of agents that run there."""
        namespace = Path(f"/proc/{self.pid}/ns/net").readlink()
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (process / "ns/net").readlink() == namespace:
                    line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    if " node " in line or "tcplab_main" in line:
                        found.append(f"{process.name}: {line}")
        return found

    def down(self) -> None:
        """End everything there."""
        for process in reversed(self.processes):
            # unshare ignores SIGTERM while it waits; the shell that it has forked dies with it.
            if process is self.processes[0]:
                process.kill()
            else:
                process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _emulating(self) -> str:
        """A script that has the kernel run programs of `machine` by QEMU, in this user namespace alone."""
        assert self.machine is not None
        uname = f"#!/bin/sh\ncase $1 in -m) echo {self.machine} ;; *) echo Linux ;; esac\n"
        (self.folder / "uname").write_text(uname)
        (self.folder / "uname").chmod(0o755)
        (self.folder / "binfmt").write_text(BINFMT[self.machine])
        return f"""
            set -e
            mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
            cat {self.folder}/binfmt >/proc/sys/fs/binfmt_misc/register
            mount --bind {self.folder}/uname /usr/bin/uname
        """

    def _enter(self) -> list[str]:
        user = () if self.machine is None else ("--user",)
        return [
            *("nsenter", "-t", str(self.pid), *user, "--net", "--mount", "--uts", *self._time("--time"), "--")
        ]

    def _time(self, *options: str) -> tuple[str, ...]:
        """Options for a namespace of its own, which not every kernel has."""
        return options if self.ahead else ()


class Hosts:
    """`us`, from where tests are run, and other hosts, on one network 10.77.0.0/24."""

    def __init__(self, folder: Path, **others: Host) -> None:
        self.folder = folder
        self.us = Host("us", "10.77.0.1", folder / "us")
        self.all = {"us": self.us, **others}

    def up(self) -> None:
        """Boot all, join them, and let `us` log in everywhere."""
        for host in self.all.values():
            host.folder.mkdir()
            host.boot()
        if self.us.within is None:
            self._join()
        ssh = self.us.folder / "home/root/.ssh"
        ssh.mkdir(mode=0o700)
        keygen(ssh / "id_ed25519")
        for name, host in self.all.items():
            if name != "us":
                host.serve_ssh((ssh / "id_ed25519.pub").read_text())
        self.trust()

    def _join(self) -> None:
        """Connect them by a bridge."""
        bridge = self.us
        bridge.run("ip", "link", "add", "name", "lan", "type", "bridge")
        for number, host in enumerate(self.all.values()):
            bridge.run(
                "ip",
                "link",
                "add",
                f"p{number}",
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "netns",
                str(host.pid),
            )
            bridge.run("ip", "link", "set", f"p{number}", "up", "master", "lan")
            # A network of people has a rate; without one, bulk flows would take the CPU of other tests.
            bridge.run(*f"tc qdisc add dev p{number} root tbf rate 1gbit burst 128kb limit 2mb".split())
            host.run("ip", "address", "add", f"{host.address}/24", "dev", "eth0")
            host.run("ip", "link", "set", "eth0", "up")
            host.run("ip", "link", "set", "lo", "up")
        bridge.run("ip", "link", "set", "lan", "up")

    def trust(self) -> None:
        """Have `us` know the hosts' keys."""
        known = [
            f"{host.address} {' '.join((host.folder / 'ssh/host.pub').read_text().split()[:2])}"
            for name, host in self.all.items()
            if name != "us"
        ]
        (self.us.folder / "home/root/.ssh/known_hosts").write_text("\n".join(known) + "\n")

    def down(self) -> None:
        """End all."""
        for host in self.all.values():
            if host.processes:
                host.down()


def keygen(path: Path) -> None:
    """A key without a passphrase."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)


def wait_for(condition: object, patience: float = _PATIENCE) -> None:
    """Wait until a callable is true."""
    assert callable(condition)
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
