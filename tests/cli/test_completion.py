"""Completion for bash, zsh and fish: what is offered, and the files that come with the package."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

FILES = Path(__file__).parents[2] / "packaging/wheel/data/share"
BASH = FILES / "bash-completion/completions/tcplab"


def offered(here: Path, *words: str) -> list[str]:
    """The completions of the last of the words."""
    ended = subprocess.run(
        [sys.executable, "-m", "tcplab"],
        cwd=here,
        env={
            **os.environ,
            "_TCPLAB_COMPLETE": "complete_bash",
            "COMP_WORDS": " ".join(("tcplab", *words)),
            "COMP_CWORD": str(len(words)),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stderr == ""
    return ended.stdout.split()


@pytest.mark.parametrize(
    ("words", "among"),
    [
        (["ru"], {"run"}),
        (["pcap", "pl"], {"plot"}),
        (["run", "--eng"], {"--engine"}),
        (["run", "--engine", "k"], {"kernel"}),
        (["run", "four"], {"four-controls"}),
        (["run", "sh"], {"short.yaml"}),
        (["study", "run", "tun"], {"tuning"}),
        (["study", "tun"], {"tuning"}),
        (["study", "re"], {"report", "remedies"}),
        (["study", "tuning", "--qu"], {"--quick", "--quiet"}),
        (["show", "x", "--table", "sock"], {"sockets"}),
        (["export", "x", "--format", "ip"], {"iperf3"}),
        (["pcap", "plot", "x", "--kind", "in"], {"inflight", "interarrival"}),
    ],
)
def test_it_offers(words: list[str], among: set[str], here: Path) -> None:
    assert set(offered(here, *words)) == among


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_packaged_file_holds_the_script_that_is_installed(shell: str, here: Path) -> None:
    (file,) = (path for path in FILES.rglob("*tcplab*") if shell in path.relative_to(FILES).parts[0])
    shown = subprocess.run(
        [sys.executable, "-m", "tcplab", "--show-completion", shell],
        env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert file.read_text().startswith(shown.stdout.rstrip())


def test_bash_completes_with_the_packaged_file(here: Path) -> None:
    program = shutil.which("tcplab", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if program is None:
        pytest.skip("tcplab is not installed as a program")
    script = (
        f"source {BASH}; COMP_WORDS=(tcplab run --engine s); COMP_CWORD=3; _tcplab_completion {program};"
        ' echo "${COMPREPLY[@]}"'
    )
    ended = subprocess.run(["bash", "-c", script], cwd=here, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["sim"]


def installed(shell: str) -> str:
    """A directory with the program, in which the shell finds it."""
    program = shutil.which("tcplab", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if program is None or shutil.which(shell) is None:
        pytest.skip(f"tcplab or {shell} is not installed")
    return str(Path(program).parent)


def test_fish_completes_with_the_packaged_file(here: Path) -> None:
    directory = installed("fish")
    file = FILES / "fish/vendor_completions.d/tcplab.fish"
    ended = subprocess.run(
        ["fish", "--no-config", "-c", f"source {file}; complete -C 'tcplab run --engine k'"],
        cwd=here,
        env={**os.environ, "PATH": f"{directory}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.split() == ["kernel"]


def test_zsh_completes_with_the_packaged_file(here: Path) -> None:
    directory = installed("zsh")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(here)
        os.environ["PATH"] = f"{directory}:{os.environ['PATH']}"
        os.execvp("zsh", ["zsh", "-f", "-i"])
    try:
        loads = f"fpath=({FILES / 'zsh/site-functions'} $fpath); autoload -Uz compinit; compinit -u -D"
        os.write(terminal, f"{loads}; print -r -- re''ady\n".encode())
        until(terminal, b"ready")
        os.write(terminal, b"tcplab run --engine k\t")
        until(terminal, b"kernel")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def until(terminal: int, wanted: bytes) -> None:
    """Wait until a terminal shows it."""
    shown = b""
    while wanted not in shown:
        ready, _, _ = select.select([terminal], [], [], 120)
        assert ready, shown
        shown += os.read(terminal, 65536)
