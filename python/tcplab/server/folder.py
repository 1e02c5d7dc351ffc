"""The directory that is served: what is in it, and safe reading and writing below it."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcplab.server import library

# A folder with more files than this is listed in part.
MAX_FILES = 2000
MAX_DEPTH = 6
LAYOUT_BYTES = 1 << 20
# Nodes farther away are at no place that a canvas can show.
MAX_PLACE = 1e6
_SKIPPED = {"node_modules", "target", "__pycache__", "venv", ".venv"}


class FolderError(Exception):
    """A path that cannot be served; `status` is HTTP's."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Folder:
    """The served directory."""

    root: Path
    """Absolute, links resolved."""
    read_only: bool = False

    @property
    def place(self) -> str:
        """Another one for each directory, for what browsers keep."""
        return _version(os.fsencode(self.root))

    @property
    def runs(self) -> Path:
        """Where results go."""
        return self.root / "runs"

    def path(self, name: str) -> Path:
        """The file of this name below the root; raises FolderError for any other."""
        if not name or "\0" in name or name.startswith(("/", "~")):
            raise FolderError("the path must be relative to the served directory")
        try:
            path = (self.root / name).resolve()
            # Names that no file can have, such as those that are too long.
            path.exists()
        except (OSError, UnicodeEncodeError) as problem:
            raise FolderError(f"{_printable(name)}: {_why(problem)}") from None
        if not path.is_relative_to(self.root):
            raise FolderError(f"{name} is outside the served directory", 403)
        return path

    def name(self, path: Path) -> str:
        """A path as the page knows it."""
        return path.relative_to(self.root).as_posix()

    def listing(self) -> dict[str, Any]:
        """The scenarios, studies and results there are, and the directories that cannot be read."""
        unreadable: dict[Path, str] = {}

        def note(error: library.ResultsError) -> None:
            unreadable[error.path] = error.reason

        found: dict[str, Any] = {
            "folder": self.root.name or "/",
            "scenarios": [],
            "studies": [],
            "results": [],
            "study_results": [],
        }
        for folder, below, files in library.walk(self.root, note):
            here = Path(folder)
            if len(here.relative_to(self.root).parts) >= MAX_DEPTH:
                below.clear()
            below[:] = sorted(n for n in below if not n.startswith(".") and n not in _SKIPPED)
            try:
                passed = _holds_results(here)
            except OSError as problem:
                note(library.ResultsError.unreadable(here, problem))
                passed = True
            if passed:
                below.clear()
                if library.is_study(here):
                    found["study_results"].append(self.name(here))
                continue
            for file in sorted(files):
                if not file.endswith((".yaml", ".yml")) or len(found["scenarios"]) >= MAX_FILES:
                    continue
                kind = _kind(here / file)
                if kind:
                    found[kind].append(self.name(here / file))
        found["results"] = [
            {
                **vars(listed),
                "path": self.name(listed.path),
                "message": listed.message.removeprefix(f"{self.root}/"),
            }
            for listed in library.list_results(self.root, studies=False)
            if listed.path not in unreadable
        ]
        found["unreadable"] = [f"{self.name(path)}: {reason}" for path, reason in unreadable.items()]
        return found

    def read(self, name: str) -> dict[str, Any]:
        """A scenario's text and layout, with the version that `write` wants back."""
        path = self._scenario(name)
        try:
            with path.open("rb") as stream:
                data = stream.read(library.MAX_BYTES + 1)
        except FileNotFoundError:
            raise FolderError(f"{name}: no such file", 404) from None
        except OSError as problem:
            raise FolderError(f"{name} cannot be read: {problem.strerror}", 404) from None
        if len(data) > library.MAX_BYTES:
            raise FolderError(f"{name} is too large for a scenario", 413)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise FolderError(f"{name} is not UTF-8 text", 415) from None
        return {
            "path": name,
            "text": text.replace("\r\n", "\n"),
            "version": _version(data),
            "layout": _layout(layout_of(path)),
        }

    def write(self, name: str, text: str, version: str | None, layout: Any) -> dict[str, Any]:
        """Write a scenario unless another hand has changed it since `version` (None: it must be new).

        Raises FolderError with status 409 then.
        """
        self._writable()
        path = self._scenario(name)
        try:
            return {"path": name, "version": self._written(path, name, text, version, layout)}
        except (OSError, UnicodeEncodeError) as problem:
            raise FolderError(f"{name} cannot be written: {_why(problem)}") from None

    def _written(self, path: Path, name: str, text: str, version: str | None, layout: Any) -> str:
        before = path.read_bytes() if path.is_file() else None
        # A file keeps its line ends; the page has one kind.
        ended = text.replace("\n", "\r\n") if before and b"\r\n" in before else text
        data = ended.encode("utf-8")
        if len(data) > library.MAX_BYTES:
            raise FolderError("the text is too large for a scenario", 413)
        there = _version(before) if before is not None else None
        if there != version and there != _version(data):
            raise FolderError(f"{name} {_hand(version, there)}", 409)
        laid = json.dumps(layout, indent=1, sort_keys=True).encode() + b"\n"
        if len(laid) > LAYOUT_BYTES:
            raise FolderError("the layout is too large", 413)
        path.parent.mkdir(parents=True, exist_ok=True)
        if there != _version(data):
            _write_whole(path, data)
        if layout is not None and (layout or layout_of(path).exists()):
            _write_whole(layout_of(path), laid)
        return _version(data)

    def remove(self, name: str, version: str) -> None:
        """Remove a scenario and its layout, if it still is as it was seen."""
        self._writable()
        path = self._scenario(name)
        if not path.is_file() or _version(path.read_bytes()) != version:
            raise FolderError(f"{name} was changed elsewhere since it was opened", 409)
        path.unlink()
        layout_of(path).unlink(missing_ok=True)

    def result(self, name: str) -> Path:
        """A result directory's path."""
        path = self.path(name)
        if not path.is_dir():
            raise FolderError(f"{name}: no such result", 404)
        return path

    def _scenario(self, name: str) -> Path:
        path = self.path(name)
        if any(part.startswith(".") for part in Path(name).parts):
            raise FolderError(f"{name}: no part of a scenario's name begins with a dot")
        if path.suffix not in (".yaml", ".yml"):
            raise FolderError(f"{name}: the name of a scenario must end in .yaml")
        if path.exists() and not path.is_file():
            raise FolderError(f"{name} is not a file")
        return path

    def _writable(self) -> None:
        if self.read_only:
            raise FolderError("this server is read-only", 403)


def layout_of(scenario: Path) -> Path:
    """Where the positions of a scenario's nodes are kept."""
    return scenario.with_name(f"{scenario.stem}.layout.json")


def _layout(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > LAYOUT_BYTES:
            return {}
        read = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    places = read.get("places") if isinstance(read, dict) else None
    if not isinstance(places, dict):
        return {}
    return {"places": {name: at for name, at in places.items() if _is_place(at)}}


def _is_place(at: Any) -> bool:
    """Whether a file that someone may have edited gives a position here."""
    return isinstance(at, dict) and all(
        type(at.get(axis)) in (int, float) and abs(at[axis]) <= MAX_PLACE for axis in ("x", "y")
    )


def _kind(path: Path) -> str | None:
    """Scenarios or studies, by the keys of the file's first lines."""
    try:
        with path.open("rb") as stream:
            head = stream.read(64 << 10)
    except OSError:
        return None
    lines = head.splitlines()
    if any(line.startswith(b"study:") for line in lines):
        return "studies"
    return "scenarios" if library.declares_scenario(head) else None


def _holds_results(path: Path) -> bool:
    return (path / "manifest.json").is_file() or (path / "run-1").is_dir() or library.is_study(path)


def _hand(version: str | None, there: str | None) -> str:
    """The change of a file since its `version` by another hand."""
    if version is None:
        return "is there already"
    return "was removed" if there is None else "was changed elsewhere since it was opened"


def _why(problem: OSError | UnicodeEncodeError) -> str:
    if isinstance(problem, UnicodeEncodeError):
        return "half a character"
    return (problem.strerror or str(problem)).lower()


def _printable(name: str) -> str:
    return name.encode("utf-8", "replace").decode("utf-8")


def _version(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _write_whole(path: Path, data: bytes) -> None:
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        Path(beside).chmod(mode)
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise
