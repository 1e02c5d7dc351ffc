"""A wheel of the package as it stands in this source tree, without building anything again."""

from __future__ import annotations

import base64
import hashlib
import os
import tomllib
import zipfile
from pathlib import Path

TREE = Path(__file__).parents[2]


def make_wheel(to: Path) -> Path:
    """Write the wheel into a folder."""
    with (TREE / "pyproject.toml").open("rb") as stream:
        project = tomllib.load(stream)["project"]
    name, version = project["name"], project["version"]
    info = f"{name}-{version}.dist-info"
    files = {
        f"{info}/METADATA": "".join(
            f"{key}: {value}\n"
            for key, value in [
                ("Metadata-Version", "2.1"),
                ("Name", name),
                ("Version", version),
                *(("Requires-Dist", needed) for needed in project["dependencies"]),
            ]
        ),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\n"
        + "".join(f"{command} = {place}\n" for command, place in project["scripts"].items()),
    }
    path = to / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as wheel:
        record = []

        def add(entry: zipfile.ZipInfo | str, content: bytes) -> None:
            at = entry if isinstance(entry, str) else entry.filename
            wheel.writestr(entry, content, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{at},sha256={digest},{len(content)}\n")

        # The shipped studies and scenarios are links to their folders.
        for folder, inner, names in os.walk(TREE / "python" / name, followlinks=True):
            inner[:] = sorted(one for one in inner if one not in ("__pycache__", "tests"))
            for one in sorted(names):
                file = Path(folder, one)
                # With its mode: the agents are programs.
                add(zipfile.ZipInfo.from_file(file, file.relative_to(TREE / "python")), file.read_bytes())
        for at, text in files.items():
            add(at, text.encode())
        wheel.writestr(f"{info}/RECORD", "".join(record) + f"{info}/RECORD,,\n")
    return path
