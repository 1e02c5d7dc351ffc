"""Studies that pages start: each is a process (`study_worker`) whose lines are sent to the pages."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

from tcplab.server.live import Hub
from tcplab.server.runs import Job, Jobs


def start(
    jobs: Jobs, hub: Hub, source: str | None, name: str, directory: Path, *, quick: bool = False
) -> Job:
    """Begin a study into a directory; without a source, resume the one that is there."""

    def work(job: Job) -> None:
        begun = [] if source is None else [source, *(["--quick"] if quick else [])]
        process = subprocess.Popen(
            [sys.executable, "-m", "tcplab.server.study_worker", str(directory), *begun],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
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
        assert process.stderr is not None
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
        said = process.stderr.read().strip().splitlines()
        job.state = "done" if code == 0 else "interrupted" if job.stop.is_set() else "failed"
        if job.state == "failed" and not job.message:
            job.message = said[-1] if said else f"the study's process ended with code {code}"

    return jobs.begin("study", name, directory, work)
