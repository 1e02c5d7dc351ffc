"""Docker for a test: a daemon with a network namespace, files and socket of its own, and Debian's base image.

Nothing of the machine's own Docker is used or changed, and no registry is asked.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

# The one of Debian's docker.io: another before it on the PATH may want plugins that are not there.
DOCKER = "/usr/bin/docker"
_PROGRAMS = {
    "docker.io": (DOCKER, "dockerd"),
    "docker-compose": ("docker-compose",),
    "debootstrap": ("debootstrap",),
    "iproute2": ("ip",),
}
_PATIENCE = 60.0


def obstacle() -> str | None:
    """Why there can be no containers here."""
    if os.geteuid() != 0:
        return "dockerd needs root"
    for package, programs in _PROGRAMS.items():
        for program in programs:
            if shutil.which(program) is None:
                return f"{package} is not installed"
    release = _release()
    if release.get("ID") != "debian":
        return "the base image is this machine's own release, and it is not Debian"
    return None


def _release() -> Mapping[str, str]:
    try:
        lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    return {key: value.strip('"') for key, _, value in (line.partition("=") for line in lines)}


class NoContainersError(Exception):
    """This machine cannot run them, for a reason that only trying shows."""


class Docker:
    """A daemon, and commands to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = os.environ | {
            "DOCKER_HOST": f"unix://{folder}/docker.sock",
            "DOCKER_BUILDKIT": "1",
            "DOCKER_CONFIG": str(folder / "config"),
        }

    def run(self, *words: str, timeout: float = 600) -> subprocess.CompletedProcess[str]:
        """Run the command `docker`; what it says of a failure is the assertion's message."""
        return self._run((DOCKER, *words), timeout)

    def compose(self, file: Path, settings: Mapping[str, str], *words: str) -> str:
        """Run docker-compose with `settings` in its environment; returns what it has said."""
        done = self._run(("docker-compose", "--file", str(file), *words), 600, settings)
        return done.stdout + done.stderr

    def _run(
        self, words: tuple[str, ...], timeout: float, settings: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=timeout, check=False,
            env=self.environment | dict(settings or {}),
        )  # fmt: skip
        assert done.returncode == 0, f"{' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def debian(self, tag: str, *packages: str) -> None:
        """Make the base image from Debian's own packages; raises NoContainersError."""
        root = self.folder / "base"
        suite = _release()["VERSION_CODENAME"]
        made = subprocess.run(
            ["debootstrap", "--variant=minbase", f"--include={','.join(packages)}", suite, root],
            capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        if made.returncode != 0:
            last = (made.stdout.strip().splitlines() or [made.stderr.strip()])[-1]
            raise NoContainersError(f"debootstrap: {last}")
        packed = subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE)
        taken = subprocess.run(
            [DOCKER, "import", "-", tag], stdin=packed.stdout, capture_output=True, text=True,
            check=False, env=self.environment,
        )  # fmt: skip
        assert packed.wait() == 0
        assert taken.returncode == 0, taken.stderr


@contextmanager
def docker(folder: Path) -> Iterator[Docker]:
    """Docker until the block ends; raises NoContainersError where the daemon does not start."""
    made = Docker(folder)
    log = folder / "dockerd.log"
    # A network namespace of its own: bridges and rules of netfilter go with it.
    words = [
        *("unshare", "--net", "--mount", "--kill-child", "--fork"),
        *("sh", "-c", 'ip link set lo up && exec dockerd "$@"', "sh"),
        *("--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")),
        *("--pidfile", str(folder / "pid"), "--host", made.environment["DOCKER_HOST"]),
    ]
    with log.open("wb") as stream:
        daemon = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True
        )
    try:
        deadline = time.monotonic() + _PATIENCE
        while subprocess.run([DOCKER, "info"], capture_output=True, env=made.environment).returncode != 0:
            if daemon.poll() is not None or time.monotonic() > deadline:
                lines = [line for line in log.read_text().splitlines() if "level=info" not in line]
                raise NoContainersError(f"dockerd: {lines[-1] if lines else 'it did not start in time'}")
            time.sleep(0.2)
        yield made
    finally:
        pid = folder / "pid"
        if pid.exists():
            # It ends its containers and containerd; unshare ends after it.
            os.kill(int(pid.read_text()), 15)
        else:
            daemon.terminate()
        try:
            daemon.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
        # Not with the temporary folder's own clearing: pytest keeps the last three, and these are gigabytes.
        for large in ("data", "exec", "base"):
            shutil.rmtree(folder / large, ignore_errors=True)
