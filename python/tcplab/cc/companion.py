"""Programs that end with this one, however it ends, and take along what they have started.

A compiler and a control at work are given a stranger's file. They may never end by themselves, and must
not outlive who waits for them. So each has a companion: a process that the kernel notifies of our end
(PR_SET_PDEATHSIG), that ends the program's process group then, and that ends as the program does.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import IO

# How long a companion may take to end what it is with, seconds.
_PATIENCE = 5.0
# It starts in 20 ms: no packages, nothing of ours.
_COMPANION = """
import ctypes, os, resource, signal, sys
PDEATHSIG = 1
prctl = ctypes.CDLL(None).prctl
parent, cpu, *command = sys.argv[1:]
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
prctl(PDEATHSIG, signal.SIGTERM)
if os.getppid() != int(parent):
    os._exit(1)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
me = os.getpid()
child = os.fork()
if child == 0:
    try:
        os.setpgid(0, 0)
        prctl(PDEATHSIG, signal.SIGKILL)
        if os.getppid() == me:
            if int(cpu):
                resource.setrlimit(resource.RLIMIT_CPU, (int(cpu), int(cpu)))
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            os.execvp(command[0], command)
    finally:
        os._exit(127)
try:
    os.setpgid(child, child)
except OSError:
    pass
def end(*_):
    try:
        os.killpg(child, signal.SIGKILL)
    except OSError:
        pass
    os._exit(1)
signal.signal(signal.SIGTERM, end)
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
for stream in (0, 1, 2):
    os.close(stream)
os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
# Processes that it started are killed with it; until it is waited for, the group is its own.
try:
    os.killpg(child, signal.SIGKILL)
except OSError:
    pass
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
status = os.waitpid(child, 0)[1]
if os.WIFSIGNALED(status):
    number = os.WTERMSIG(status)
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(me, number)
os._exit(os.waitstatus_to_exitcode(status) & 255)
"""


def start(
    command: Sequence[str],
    *,
    cpu: int = 0,
    stdin: int | IO[bytes] | None = None,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    env: Mapping[str, str] | None = None,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program with its companion, which is what is returned; it ends as the program does.

    `cpu` limits each of its processes to so many seconds of CPU time (SIGKILL); 0 does not. The calling
    thread must live as long as the program is to: the kernel goes by threads. Raises OSError.
    """
    companion = [sys.executable, "-I", "-S", "-c", _COMPANION, str(os.getpid()), str(cpu), *command]
    return subprocess.Popen(
        companion,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=env,
        pass_fds=pass_fds,
        # Ctrl-C is for us.
        start_new_session=True,
    )


def end(process: subprocess.Popen[bytes]) -> None:
    """End a program that `start` started, and what it has started."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run(
    command: Sequence[str], text: bytes, *, cpu: int, timeout: float, env: Mapping[str, str]
) -> tuple[int, bytes]:
    """Run a program on `text`; its exit code, or minus the signal, and what it says on standard error.

    Raises OSError and subprocess.TimeoutExpired.
    """
    process = start(
        command,
        cpu=cpu,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=env,
    )
    try:
        _, said = process.communicate(text, timeout)
        return process.returncode, said
    finally:
        end(process)
        for stream in (process.stdin, process.stderr):
            if stream is not None:
                stream.close()
