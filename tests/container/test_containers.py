"""The image and the compose file of `packaging/container`, built and run for real.

The base image is made of Debian's own packages, and tcplab's wheel of this source tree: no registry of images
is asked, and nothing is compiled.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import polars as pl
import pytest

from .docker import Docker, NoContainersError, docker, obstacle
from .wheel import TREE, make_wheel

pytestmark = [
    pytest.mark.skipif(obstacle() is not None, reason=str(obstacle())),
    pytest.mark.xdist_group("container"),
]

PACKAGING = TREE / "packaging/container"
# Packages that the image installs, so that its own `apt-get install` finds them there.
PACKAGES = ("ca-certificates", "iproute2", "openssh-client", "python3", "python3-venv")
# The tuning study with fewer and shorter runs than its quick form: whether it works is what is asked here.
STUDY = """
tcplab: 1
study: small-tuning
scenario:
  tcplab: 1
  name: bulk-transfer
  network: {path: {rate: 1 Gbit/s, rtt: 1 ms}}
  flows: [{name: bulk, kind: tcp, cc: CONTROL}]
  duration: 1 s
grid:
  window: {set: network.hosts.window, values: [64 KiB, 1 MiB]}
  condition: {values: {+50 ms: {network.path.rtt: 51 ms}}}
cells:
  - {group: baseline}
  - {group: window, window: [64 KiB, 1 MiB]}
  - {group: condition, condition: [+50 ms]}
repeat: 1
quick: {repeat: 1}
"""


def control() -> str:
    """One that the kernel lets a process without capabilities choose."""
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
    return "bbr1" if allowed[0] == "bbr" else allowed[0]


def wheels(to: Path) -> None:
    """tcplab's wheel and those that it needs, in the versions of uv.lock."""
    make_wheel(to)
    uv = shutil.which("uv") or str(TREE / ".tools/bin/uv")
    if not os.access(uv, os.X_OK):
        pytest.skip("uv is not installed: scripts/setup develop")
    needed = to / "requirements.txt"
    words = ("export", "--locked", "--no-dev", "--no-emit-project", "--no-hashes", "--quiet", "--directory")
    subprocess.run([uv, *words, TREE, "--output-file", needed], check=True, stdout=subprocess.DEVNULL)
    pip = [sys.executable, "-m", "pip"] if _has_pip() else [str(TREE / ".tools/bin/pip")]
    fetched = subprocess.run(
        [*pip, "download", "--quiet", "--only-binary", ":all:", "--dest", to, "--requirement", needed],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if fetched.returncode != 0:
        pytest.skip(f"the wheels of the dependencies are not to be had: {fetched.stderr.strip()[-300:]}")


def _has_pip() -> bool:
    try:
        return bool(version("pip"))
    except PackageNotFoundError:
        return False


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Docker]:
    """Docker with the image `tcplab`."""
    folder = tmp_path_factory.mktemp("docker")
    context = folder / "context"
    given = context / "packaging/container/wheels"
    given.mkdir(parents=True)
    shutil.copy(PACKAGING / "Dockerfile", given.parent)
    wheels(given)
    try:
        with docker(folder) as made:
            made.debian("debian:12-slim", *PACKAGES)
            made.run(
                "build", "--tag", "tcplab", "--file", str(given.parent / "Dockerfile"),
                "--build-arg", "WHEELS=given", "--build-arg", "PIP_NO_INDEX=1", str(context),
            )  # fmt: skip
            yield made
    except NoContainersError as reason:
        pytest.skip(str(reason))


def test_the_image_runs_as_an_ordinary_user_and_can_simulate(built: Docker) -> None:
    who = built.run("run", "--rm", "--entrypoint", "id", "tcplab", "-un")
    assert who.stdout.strip() == "tcplab"
    done = built.run(
        "run", "--rm", "--network", "none", "--cap-drop", "ALL", "tcplab",
        *("run", "four-controls", "--set", "duration=1 s", "--no-report", "--json"),
    )  # fmt: skip
    assert json.loads(done.stdout)


def test_compose_runs_the_study_between_two_containers_and_leaves_a_report(
    built: Docker, tmp_path: Path
) -> None:
    file = tmp_path / "compose.yaml"
    shutil.copy(PACKAGING / "compose.yaml", file)
    results = tmp_path / "results"
    results.mkdir()
    (results / "small.yaml").write_text(STUDY.replace("CONTROL", control()))
    os.chown(results, 1000, 1000)
    settings = {"TCPLAB_STUDY": "/results/small.yaml"}
    try:
        built.compose(file, settings, "up", "--detach", "--no-build")
        analyzer = built.compose(file, settings, "ps", "--quiet", "analyzer").split()[0]
        code = built.run("wait", analyzer).stdout.strip()
        said = built.compose(file, settings, "logs", "--no-color")
    finally:
        built.compose(file, settings, "down", "--volumes", "--timeout", "5")
    assert code == "0", said
    found = results / "study"
    assert "small-tuning" in (found / "report.html").read_text(), said
    assert list((found / "figures").glob("*.svg"))
    rows = pl.read_parquet(found / "results.parquet").filter(pl.col("flow").is_null())
    # The path between containers is what it is: the cell that sets another is left out.
    assert rows.height == 3, said
    assert set(rows["status"]) == {"done"}, said
    assert (rows["goodput"] > 0).all()
    manifest = json.loads(next(found.rglob("run-1/manifest.json")).read_text())
    hosts = manifest["facts"]["hosts"]
    assert hosts["left"]["address"] != hosts["right"]["address"]
    assert "admitted" in said
