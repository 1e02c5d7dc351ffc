"""The server's addresses and what each answers."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.websockets import WebSocket

from tcplab.plan.types import Plan
from tcplab.server import curves, frames, library, studies
from tcplab.server.changes import notify_of_changes
from tcplab.server.folder import Folder, FolderError
from tcplab.server.labs.routes import Labs
from tcplab.server.live import Hub
from tcplab.server.packets import packets
from tcplab.server.requests import RequestError, body_of
from tcplab.server.runs import PREVIEW_PACKETS, Job, Jobs, PreviewError, Previews, SupersededError
from tcplab.server.security import POLICY, REPORT_POLICY, Gate, Guard

PAGE = Path(__file__).parent / "page"
_YEAR = "public, max-age=31536000, immutable"

Handler = Callable[[Request], Awaitable[Response]]


@dataclass
class Server:
    """State that the routes share."""

    folder: Folder
    gate: Gate
    may_run: bool
    """Whether kernel runs, own C files and studies are allowed: on loopback, or with --allow-run."""

    def __post_init__(self) -> None:
        self.hub = Hub()
        self.previews = Previews()
        self.jobs = Jobs(self.hub, self.folder.name)
        self.labs = Labs(self.folder, self.hub, may_run=self.may_run)

    # The page.

    async def page(self, request: Request) -> Response:
        """The page, with the nonce that its styles carry."""
        index = PAGE / "index.html"
        if not index.is_file():
            return HTMLResponse(_NOT_BUILT, 503)
        nonce = secrets.token_urlsafe(16)
        text = index.read_text(encoding="utf-8").replace("__NONCE__", nonce)
        return HTMLResponse(text, headers={"content-security-policy": POLICY.format(nonce=nonce)})

    async def login(self, request: Request) -> Response:
        """The token for a cookie."""
        body = await body_of(request)
        if not self.gate.knows(str(body.get("token", ""))):
            raise RequestError("wrong token: use the address that `tcplab ui` printed", 401)
        answer = JSONResponse({"ok": True})
        answer.set_cookie(
            self.gate.cookie,
            self.gate.token,
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
            path=self.gate.base_path or "/",
        )
        return answer

    async def session(self, request: Request) -> Response:
        """The server's version and permissions."""
        engines = [name for name in library.engine_names() if name == "sim" or self.may_run]
        return JSONResponse(
            {
                "version": library.version(),
                "folder": self.folder.root.name or "/",
                "place": self.folder.place,
                "read_only": self.folder.read_only,
                "may_run": self.may_run,
                "engines": engines,
                "controls": library.controls(),
                "panels": {name: source.unit for name, source in curves.PANELS.items()},
                "node_kinds": library.node_kinds(),
            }
        )

    async def schema(self, request: Request) -> Response:
        """The JSON Schema of a scenario."""
        return JSONResponse(library.json_schema())

    # Files.

    async def files(self, request: Request) -> Response:
        """Contents of the directory."""
        going = self.jobs.going()
        found = await run_in_threadpool(self.folder.listing)
        for result in found["results"]:
            result["status"] = _status(result["status"], going=result["path"] in going)
        found["shipped_studies"] = [
            {"name": name, "about": about} for name, about in library.shipped_studies()
        ]
        return JSONResponse(found)

    async def read(self, request: Request) -> Response:
        """A scenario."""
        return JSONResponse(await run_in_threadpool(self.folder.read, request.query_params.get("path", "")))

    async def write(self, request: Request) -> Response:
        """Save a scenario."""
        body = await body_of(request)
        path, text, version = body.get("path"), body.get("text"), body.get("version")
        layout = body.get("layout")
        if not isinstance(path, str) or not isinstance(text, str) or not isinstance(version, str | None):
            raise RequestError("path, text and version are needed")
        if not isinstance(layout, dict | None):
            raise RequestError("a layout is an object")
        saved = await run_in_threadpool(self.folder.write, path, text, version, layout)
        self.hub.broadcast({"type": "saved", "page": body.get("page", ""), **saved})
        return JSONResponse(saved)

    # Scenarios.

    async def check(self, request: Request) -> Response:
        """Everything that is wrong with a text."""
        text, name, base, engine, _ = await self._scenario(request)
        found = await run_in_threadpool(
            library.check, text, name, base, engine, self.folder.root, own_code=self.may_run
        )
        return JSONResponse(found)

    async def imported(self, request: Request) -> Response:
        """The topology of another tool as a scenario."""
        body = await body_of(request)
        text, name = body.get("text"), body.get("name")
        if not isinstance(text, str) or not isinstance(name, str):
            raise RequestError("text and name are needed")
        try:
            return JSONResponse(await run_in_threadpool(library.imported, text, name))
        except library.UnreadableError as problem:
            raise RequestError(f"{name}: {problem}", 422) from None

    async def preview(self, request: Request) -> Response:
        """Simulate a text now, and answer with its curves, or with why there are none.

        Half a word that someone types is not a failed request.
        """
        text, name, base, _, body = await self._scenario(request)
        wants_packets = bool(body.get("packets"))
        points = _number(body.get("points", 1000), 50, curves.MAX_POINTS)
        panels = _panels(body.get("panels"))
        order = _number(body.get("order", 0), 0, 2**53)

        def work() -> bytes:
            prepared = library.prepare(
                text, name, base, "sim", self.folder.root, own_code=self.may_run, packets=wants_packets
            )
            count = library.packets_of(prepared)
            if count > PREVIEW_PACKETS:
                raise PreviewError(f"about {count / 1e6:.0f} million packets: press Run to simulate them")
            page = str(body.get("page", ""))[:64]

            def notify(share: float) -> None:
                self.hub.broadcast({"type": "preview", "page": page, "share": share})

            made = self.previews.make(page, prepared, order, notify)
            about = {"run": made.id, "wall": made.wall, "packets": count}
            return curves.curves(made.run_dir, made.plan, panels=panels, points=points, more=about)

        try:
            return Response(await run_in_threadpool(work), media_type=frames.MEDIA_TYPE)
        except SupersededError:
            return Response(status_code=204)
        except (
            PreviewError,
            library.ScenarioErrors,
            library.UnsupportedError,
            library.ForbiddenError,
        ) as problem:
            return JSONResponse({"refused": str(problem)})

    async def run(self, request: Request) -> Response:
        """Begin a run that is kept."""
        text, name, base, engine, body = await self._scenario(request)
        self._may_write()
        if engine != "sim" and not self.may_run:
            raise RequestError("kernel runs are not allowed on this server: start it with --allow-run", 403)

        def work() -> dict[str, Any]:
            prepared = library.prepare(
                text,
                name,
                base,
                engine,
                self.folder.root,
                own_code=self.may_run,
                packets=bool(body.get("packets")),
            )
            if large := library.too_large(prepared, self.folder.root):
                raise RequestError("not enough on this machine: " + "; ".join(large), 422)
            path = library.claim(prepared, self.folder.runs)
            return self.jobs.start(prepared, path).to_json()

        try:
            return JSONResponse(await run_in_threadpool(work))
        except (library.ScenarioErrors, library.UnsupportedError, library.ForbiddenError) as problem:
            raise RequestError(str(problem), 422) from None

    async def stop(self, request: Request) -> Response:
        """Stop a run or a study."""
        try:
            return JSONResponse(self.jobs.stop(request.path_params["job"]).to_json())
        except KeyError:
            raise RequestError("no such run", 404) from None

    # Results.

    async def curves(self, request: Request) -> Response:
        """A window of a run's curves."""
        run_dir, plan, about = await run_in_threadpool(self._run, request)
        start, end = _window(request, plan)
        points = _number(request.query_params.get("points", 1000), 50, curves.MAX_POINTS)
        panels = _panels(
            request.query_params.get("panels", "").split(",") if "panels" in request.query_params else None
        )
        data = await run_in_threadpool(
            lambda: curves.curves(
                run_dir,
                plan,
                panels=panels,
                start=start,
                end=end,
                points=points,
                more=about,
            )
        )
        return Response(data, media_type=frames.MEDIA_TYPE)

    async def packets(self, request: Request) -> Response:
        """The packets on their way in a window of time."""
        run_dir, plan, _ = await run_in_threadpool(self._run, request)
        start, end = _window(request, plan)
        data = await run_in_threadpool(packets, run_dir, plan, start, end)
        return Response(data, media_type=frames.MEDIA_TYPE)

    async def result(self, request: Request) -> Response:
        """A result's manifest, plan and summary."""

        def work() -> dict[str, Any]:
            path = self._result_path(request)
            going = self.jobs.busy(path)
            run = library.load(path)
            manifest = json.loads(run.manifest.to_json())
            try:
                summary = library.summary(run)
            except Exception as problem:  # noqa: BLE001, RUF100 - a run cut short may have too little for it
                summary = {"tables": [], "notes": [str(problem)]}
            return {
                "path": request.query_params.get("path", ""),
                "name": run.name,
                "engine": run.engine,
                "status": _status(run.status, going=going),
                "warnings": run.warnings,
                "repetitions": run.repetitions,
                "overload": [m.overload for m in run.manifests.values() if m.overload],
                "message": next((m.message for m in run.manifests.values() if m.message), ""),
                "manifest": manifest,
                "plan": run.plan,
                "text": run.scenario_text,
                "summary": summary,
            }

        return JSONResponse(await run_in_threadpool(work))

    async def report(self, request: Request) -> Response:
        """A result's report, written when it is first asked for after its last run."""

        def work() -> Path:
            names = request.query_params.getlist("path")
            paths = [self.folder.result(name) for name in names]
            if not paths:
                raise RequestError("path is needed")
            if len(paths) > 1:
                if len(paths) > 8:
                    raise RequestError("at most 8 results are compared")
                target = self.previews_folder / f"compare-{abs(hash(tuple(names)))}.html"
                return library.write_comparison(paths, target)
            if library.is_study(paths[0]):
                existing = paths[0] / "report.html"
                return existing if existing.is_file() else library.study_report(paths[0])
            existing = paths[0] / "report.html"
            if existing.is_file() and (self.folder.read_only or _is_current(existing)):
                return existing
            self._may_write()
            return library.write_report(paths[0])

        path = await run_in_threadpool(work)
        headers = {"content-security-policy": REPORT_POLICY, "cache-control": "no-store"}
        if "download" in request.query_params:
            return FileResponse(path, media_type="text/html", filename=path.name, headers=headers)
        return FileResponse(path, media_type="text/html", headers=headers)

    async def archive(self, request: Request) -> Response:
        """A result as one file to hand to someone else."""
        import io
        import zipfile

        path = await run_in_threadpool(self._result_path, request)

        def work() -> bytes:
            files = [file for file in sorted(path.rglob("*")) if file.is_file() and not file.is_symlink()]
            if sum(file.stat().st_size for file in files) > 1 << 30:
                raise RequestError("this result is larger than 1 GiB: copy its directory instead", 413)
            data = io.BytesIO()
            with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
                for file in files:
                    archive.write(file, f"{path.name}/{file.relative_to(path).as_posix()}")
            return data.getvalue()

        data = await run_in_threadpool(work)
        return Response(
            data,
            media_type="application/zip",
            headers={"content-disposition": f"attachment; filename*=UTF-8''{quote(path.name)}.zip"},
        )

    # Studies.

    async def study(self, request: Request) -> Response:
        """A study's cells and their figures; no content where its file is not read yet, or could not be."""
        name = request.query_params.get("path", "")
        asked = self.folder.path(name)
        if self.jobs.knows(asked) and not library.is_study(asked):
            return Response(status_code=204)
        path = self.folder.result(name)

        def work() -> dict[str, Any]:
            found = library.study_results(path)
            found["places"] = {
                cell: self.folder.name(Path(place).resolve()) for cell, place in found["places"].items()
            }
            return found

        return JSONResponse(_finite(await run_in_threadpool(work)))

    async def start_study(self, request: Request) -> Response:
        """Begin a study, or go on with one."""
        body = await body_of(request)
        self._may_write()
        if not self.may_run:
            raise RequestError("studies are not allowed on this server: start it with --allow-run", 403)
        if isinstance(body.get("resume"), str):
            return JSONResponse(self._resumed(self.folder.result(body["resume"])).to_json())
        if isinstance(body.get("path"), str):
            file = self.folder.path(body["path"])
            if not file.is_file():
                raise RequestError(f"{body['path']}: no such file", 404)
            source, name = str(file), file.stem if file.name != "study.yaml" else file.parent.name
        else:
            source = name = str(body.get("shipped", ""))
            if name not in dict(library.shipped_studies()):
                raise RequestError("unknown shipped study", 404)
        directory = library.reserve(f"study-{name}", self.folder.runs)
        job = studies.start(self.jobs, self.hub, source, name, directory, quick=bool(body.get("quick")))
        return JSONResponse(job.to_json())

    async def live(self, socket: WebSocket) -> None:
        """Stream events as they happen."""
        await self.hub.serve(socket, {"type": "hello", "jobs": self.jobs.to_json()})

    # Parts.

    def _resumed(self, directory: Path) -> Job:
        if self.jobs.busy(directory):
            raise RequestError("this study is running", 409)
        try:
            name = library.study_begun(directory, self.folder.root)
        except library.ForbiddenError as problem:
            raise RequestError(str(problem), 403) from None
        return studies.start(self.jobs, self.hub, None, name, directory)

    async def _scenario(self, request: Request) -> tuple[str, str, Path, str, dict[str, Any]]:
        """The text of a request, what it is called, the directory of its files, and the engine."""
        body = await body_of(request)
        text, name = body.get("text"), body.get("path") or "scenario.yaml"
        engine = body.get("engine", "sim")
        if not isinstance(text, str) or not isinstance(name, str):
            raise RequestError("text is needed")
        if engine not in library.engine_names():
            raise RequestError(f"unknown engine {engine}")
        return text, name, self.folder.path(name).parent, str(engine), body

    def _run(self, request: Request) -> tuple[Path, Plan, dict[str, Any]]:
        """The run directory and plan that a request names; engine and overload verdict of a kept run."""
        name = request.query_params.get("run", "")
        if name.startswith("preview-"):
            try:
                made = self.previews[name]
            except KeyError:
                raise RequestError("this simulation is gone: simulate again", 410) from None
            return made.run_dir, made.plan, {}
        run = library.load(self.folder.result(name))
        number = int(_number(request.query_params.get("repetition", run.repetitions[0]), 1, 10**6))
        if number not in run.run_dirs:
            raise RequestError(f"{name} has no repetition {number}", 404)
        about = {"engine": run.engine, "overload": run.manifests[number].overload}
        return run.run_dirs[number], run.plan, about

    def _result_path(self, request: Request) -> Path:
        return self.folder.result(request.query_params.get("path", ""))

    @property
    def previews_folder(self) -> Path:
        """Where pages that no one keeps are written."""
        return self.previews.place

    def _may_write(self) -> None:
        if self.folder.read_only:
            raise RequestError("this server is read-only", 403)


def create(folder: Folder, gate: Gate, *, may_run: bool = True) -> Starlette:
    """The application."""
    server = Server(folder, gate, may_run)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        watching = asyncio.create_task(notify_of_changes(server.folder, server.hub))
        try:
            yield
        finally:
            watching.cancel()
            await run_in_threadpool(server.jobs.close)
            await run_in_threadpool(server.labs.close)
            server.previews.close()

    api = [
        Route("/", server.page),
        Route("/api/login", server.login, methods=["POST"]),
        Route("/api/session", server.session),
        Route("/api/schema", server.schema),
        Route("/api/files", server.files),
        Route("/api/file", server.read),
        Route("/api/file", server.write, methods=["PUT"]),
        Route("/api/check", server.check, methods=["POST"]),
        Route("/api/import", server.imported, methods=["POST"]),
        Route("/api/preview", server.preview, methods=["POST"]),
        Route("/api/runs", server.run, methods=["POST"]),
        Route("/api/jobs/{job}/stop", server.stop, methods=["POST"]),
        Route("/api/curves", server.curves),
        Route("/api/packets", server.packets),
        Route("/api/result", server.result),
        Route("/api/report", server.report),
        Route("/api/archive", server.archive),
        Route("/api/study", server.study),
        Route("/api/studies", server.start_study, methods=["POST"]),
        WebSocketRoute("/api/live", server.live),
        *server.labs.routes,
    ]
    if (PAGE / "assets").is_dir():
        api.append(Mount("/assets", _Assets(directory=PAGE / "assets")))
    routes: list[Any] = [Mount(gate.base_path, routes=api)] if gate.base_path else list(api)
    app = Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[
            Middleware(Guard, gate=gate),
            Middleware(GZipMiddleware, minimum_size=4000, compresslevel=4),
        ],
        exception_handlers={
            RequestError: _explained,
            FolderError: _explained,
            library.ResultsError: _results_explained,
            library.ScenarioErrors: _results_explained,
            Exception: _bug,
        },
    )
    app.state.server = server
    return app


class _Assets(StaticFiles):
    """Built files, whose names change with what is in them."""

    def file_response(self, *args: Any, **settings: Any) -> Response:
        """The file, for as long as a browser likes."""
        response = super().file_response(*args, **settings)
        response.headers["cache-control"] = _YEAR
        return response


def _status(kept: str, *, going: bool) -> str:
    """A result's status. On disk a run that goes on is interrupted until its end, its later runs missing."""
    return "running" if going and kept in ("interrupted", "done", "empty") else kept


def _is_current(report: Path) -> bool:
    """Whether no run of its result has ended since it was written."""
    manifests = [report.with_name("manifest.json"), *report.parent.glob("run-*/manifest.json")]
    written = report.stat().st_mtime_ns
    return all(manifest.stat().st_mtime_ns <= written for manifest in manifests if manifest.is_file())


def _number(value: Any, minimum: float, maximum: float) -> int:
    try:
        return int(min(max(float(value), minimum), maximum))
    except (TypeError, ValueError):
        raise RequestError("not a number") from None


def _window(request: Request, plan: Plan) -> tuple[int, int]:
    """The window of time that a request asks for, ns."""
    duration = int(plan["duration"])
    start = _number(float(_query(request, "from", 0)) * 1e9, 0, duration)
    end = _number(float(_query(request, "to", duration / 1e9)) * 1e9, 0, duration)
    if end <= start:
        raise RequestError("empty time window")
    return start, end


def _query(request: Request, name: str, default: float) -> float:
    try:
        value = float(request.query_params.get(name, default))
    except ValueError:
        raise RequestError(f"{name} must be a number") from None
    if value != value:
        raise RequestError(f"{name} must be a number")
    return value


def _panels(asked: Any) -> tuple[str, ...]:
    if asked is None:
        return curves.DEFAULT_PANELS
    if not isinstance(asked, list) or not all(isinstance(name, str) for name in asked):
        raise RequestError("panels must be a list of names")
    if unknown := [name for name in asked if name not in curves.PANELS]:
        raise RequestError(f"unknown panel {unknown[0]} (panels: {', '.join(curves.PANELS)})")
    return tuple(dict.fromkeys(asked))


def _finite(value: Any) -> Any:
    """The value as JSON can express it: NaN and infinities become null."""
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if isinstance(value, dict):
        return {str(key): _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value


async def _explained(_: Request, problem: Exception) -> Response:
    return JSONResponse({"error": str(problem)}, getattr(problem, "status", 400))


async def _results_explained(_: Request, problem: Exception) -> Response:
    return JSONResponse({"error": str(problem)}, 422)


async def _bug(_: Request, problem: Exception) -> Response:
    text = f"internal error: {type(problem).__name__}: {problem}"
    return JSONResponse({"error": text}, 500)


_NOT_BUILT = """<!doctype html><meta charset="utf-8"><title>tcplab</title>
<h1>The page is not built</h1>
<p>Run <code>make ui</code> in the source tree, then load this page again.</p>
"""
