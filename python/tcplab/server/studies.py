"""Studies that pages start: each is a process (`study_worker`) whose lines are sent to the pages."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO

from tcplab.server.live import Hub
from tcplab.server.runs import Job, Jobs


def start(
    jobs: Jobs, hub: Hub, source: str | None, name: str, directory: Path, *, quick: bool = False
) -> Job:
    """Begin a study into a directory; without a source, resume the one that is there."""

    def work(job: Job) -> None:
        begun = [] if source is None else [source, *(["--quick"] if quick else [])]
        try:
            # A file holds whatever is written; a pipe that nobody reads meanwhile would stop the study.
            with tempfile.TemporaryFile() as errors:
                follow(job, errors, begun)
        finally:
            # A study that left nothing leaves no directory.
            with suppress(OSError):
                directory.rmdir()

    def follow(job: Job, errors: IO[bytes], begun: list[str]) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "tcplab.server.study_worker", str(directory), *begun],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        job.state = "running"
        over = threading.Event()

        def stopping() -> None:
            while not over.is_set():
                if job.stop.wait(0.2):
                    process.send_signal(signal.SIGINT)
                    return

        threading.Thread(target=stopping, daemon=True).start()
        assert process.stdout is not None
        for line in process.stdout:
            try:
                said = json.loads(line)
            except ValueError:
                continue
            job.repeat = int(said.get("of", job.repeat))
            job.repetition = int(said.get("number", job.repetition))
            job.message = str(said.get("error", job.message))
            job.reporting = bool(said.get("reporting", job.reporting))
            hub.broadcast({"type": "study", "job": job.id, "path": job.path, **said})
            jobs.changed(job)
        code = process.wait()
        over.set()
        job.reporting = False
        job.state = "done" if code == 0 else "interrupted" if job.stop.is_set() else "failed"
        if job.state == "failed" and not job.message:
            job.message = _last_line(errors) or f"the study's process ended with code {code}"

    return jobs.begin("study", name, directory, work)


def _last_line(file: IO[bytes]) -> str:
    """The last line of a file of any length, as far as a message shows it."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - 1000))
    lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
