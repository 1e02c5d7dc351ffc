"""`tcplab run --engine remote` at `us`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl

from .hosts import Hosts


class Run:
    """One of them, from its start."""

    def __init__(
        self,
        hosts: Hosts,
        text: str,
        at: dict[str, str] | None = None,
        environment: dict[str, str] | None = None,
        *,
        default_places: bool = True,
    ) -> None:
        self.out = hosts.us.folder / f"out-{len(list(hosts.us.folder.glob('out-*')))}"
        scenario = self.out.with_suffix(".yaml")
        scenario.write_text(text)
        usual = {"left": "ssh://10.77.0.2", "right": "ssh://10.77.0.3"}
        places = (usual if default_places else {}) | (at or {})
        inside = Path("/run/keep")
        at_words = (word for name, url in places.items() for word in ("--at", f"{name}={url}"))
        self.process = subprocess.Popen(
            [
                *hosts.us._enter(), sys.executable, "-m", "tcplab", "run", str(inside / scenario.name),
                "--engine", "remote", *at_words,
                "--output", str(inside / self.out.name), "--no-report",
            ],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | (environment or {}),
        )  # fmt: skip

    def end(self, timeout: float = 90.0) -> tuple[int, str]:
        """Its exit code and what it said."""
        said, problems = self.process.communicate(timeout=timeout)
        return self.process.returncode, said + problems

    @property
    def manifest(self) -> dict[str, Any]:
        read: dict[str, Any] = json.loads((self.out / "run-1/manifest.json").read_text())
        return read

    def table(self, name: str) -> pl.DataFrame:
        return pl.read_parquet(self.out / f"run-1/{name}.parquet")
