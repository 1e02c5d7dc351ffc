"""The addresses of networks that stay up.

What they do is done by the server's user: they answer only where the server may run programs.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketState

from tcplab.plan.types import Plan
from tcplab.process import given_environment
from tcplab.server import library
from tcplab.server.folder import Folder
from tcplab.server.labs import network, sockets
from tcplab.server.live import Hub
from tcplab.server.requests import RequestError, body_of

Json = dict[str, Any]
_CAPTURES_KEPT = 4
# WebSocket's code for a request that is refused.
_REFUSED = 4403
_LISTING = [sys.executable, "-m", "tcplab.server.labs.list_packets"]


@dataclass
class _Capture:
    link: str
    file: Path


class Labs:
    """Handlers of these requests."""

    def __init__(self, folder: Folder, hub: Hub, *, may_run: bool) -> None:
        self._folder = folder
        self._hub = hub
        self._may_run = may_run
        self._traffic: dict[str, network.Traffic] = {}
        self._place = tempfile.TemporaryDirectory(prefix="tcplab-captures-")
        self._captures: OrderedDict[str, _Capture] = OrderedDict()
        self._counter = itertools.count(1)

    @property
    def routes(self) -> list[BaseRoute]:
        """All of them."""
        lab = "/api/labs/{lab}"
        return [
            Route("/api/labs", self.all),
            Route("/api/labs", self.up, methods=["POST"]),
            Route(f"{lab}/down", self.down, methods=["POST"]),
            Route(f"{lab}/change", self.change, methods=["POST"]),
            Route(f"{lab}/traffic", self.traffic, methods=["POST"]),
            Route(f"{lab}/tables", self.tables),
            Route("/api/captures/{capture}", self.captured),
            Route("/api/captures/{capture}/ladder", self.ladder),
            WebSocketRoute(f"{lab}/watch", self.watch),
            WebSocketRoute(f"{lab}/terminal", self.terminal),
            WebSocketRoute(f"{lab}/capture", self.capture),
        ]

    def close(self) -> None:
        """End what pages have started in them; the networks stay up."""
        for traffic in self._traffic.values():
            traffic.stop()
        self._place.cleanup()

    async def all(self, _: Request) -> Response:
        """The networks of this user that are up."""
        return JSONResponse(await run_in_threadpool(self._labs) if self._may_run else [])

    async def up(self, request: Request) -> Response:
        """Build the network of a text."""
        text, path = await self._scenario(request)

        def work() -> Json:
            return self._about(network.up(self._plan(text, path), str(self._folder.path(path))))

        made = await self._asked(work)
        self._changed()
        return JSONResponse(made)

    async def down(self, request: Request) -> Response:
        """End a network and every program in it."""
        self._allowed()
        name = request.path_params["lab"]

        def work() -> None:
            self._end_traffic(name)
            network.down(name)

        await self._asked(work)
        self._changed()
        return JSONResponse({"ok": True})

    async def change(self, request: Request) -> Response:
        """Change settings of a link now."""
        self._allowed()
        body = await body_of(request)
        link, settings, direction = body.get("link"), body.get("settings"), body.get("direction", "both")
        if not isinstance(link, str) or not isinstance(settings, dict) or not settings:
            raise RequestError("link and settings are needed")
        if direction not in ("both", "forward", "reverse", "backward"):
            raise RequestError("direction must be both, forward or reverse")
        texts = {str(key): str(value) for key, value in settings.items()}
        name = request.path_params["lab"]
        await self._asked(lambda: network.change(network.find(name), link, texts, direction))
        said = ", ".join(f"{key} {value}" for key, value in texts.items())
        self._hub.broadcast({"type": "lab-changed", "lab": name, "link": link, "settings": said})
        self._changed()
        return JSONResponse({"ok": True})

    async def traffic(self, request: Request) -> Response:
        """Start the flows of the text that a network was built from, or stop them."""
        name = request.path_params["lab"]
        body = await body_of(request)
        self._allowed()
        text, path = body.get("text"), body.get("path") or "scenario.yaml"
        if text is None:
            await self._asked(lambda: self._end_traffic(name))
        elif isinstance(text, str) and isinstance(path, str):
            await self._asked(lambda: self._begin_traffic(name, text, path))
        else:
            raise RequestError("text must be a scenario")
        self._changed()
        return JSONResponse({"ok": True})

    async def tables(self, request: Request) -> Response:
        """A node's addresses, routes and neighbours."""
        self._allowed()
        name, node = request.path_params["lab"], request.query_params.get("node", "")
        text = await self._asked(lambda: network.tables(network.find(name), node))
        return JSONResponse({"text": text})

    async def captured(self, request: Request) -> Response:
        """A capture's file, complete or still growing."""
        self._allowed()
        found = self._capture(request)
        media = "application/x-pcapng"
        return FileResponse(found.file, media_type=media, filename=f"{found.link}.pcapng")

    async def ladder(self, request: Request) -> Response:
        """The flow graph of a capture's first packets, as SVG."""
        self._allowed()
        found = self._capture(request)
        flow = request.query_params.get("flow", "1")
        if not flow.isdigit():
            raise RequestError("flow must be a number")
        dark = request.query_params.get("theme") == "dark"
        svg = await self._asked(lambda: library.ladder(found.file, int(flow), dark=dark))
        return Response(svg, media_type="image/svg+xml")

    async def watch(self, socket: WebSocket) -> None:
        """Stream the events of a network as they happen."""
        if lab := await self._entered(socket):
            await sockets.watch(socket, network.watch_command(lab), lab.about["links"])

    async def terminal(self, socket: WebSocket) -> None:
        """A shell in a node, or the console of its FRR."""
        if not (lab := await self._entered(socket)):
            return
        node = socket.query_params.get("node", "")
        try:
            command = network.terminal_command(lab, node, console=socket.query_params.get("what") == "vtysh")
        except network.TestbedError as problem:
            await _refuse(socket, problem.message)
            return
        environment = {
            **given_environment(),
            "TERM": "xterm-256color",
            "TCPLAB_LAB": lab.name,
            "TCPLAB_NODE": node,
            "PS1": f"{node}\\$ ",
        }
        await sockets.terminal(socket, command, environment, lambda code: network.why_ended(lab, code))

    async def capture(self, socket: WebSocket) -> None:
        """Capture on a link: packets as they come; the first message names the capture."""
        if not (lab := await self._entered(socket)):
            return
        link = socket.query_params.get("link", "")
        try:
            command = network.capture_command(lab, link, socket.query_params.get("node"))
        except network.TestbedError as problem:
            await _refuse(socket, problem.message)
            return
        name = str(next(self._counter))
        made = self._captures[name] = _Capture(link, Path(self._place.name) / f"{name}.pcapng")
        while len(self._captures) > _CAPTURES_KEPT:
            self._captures.popitem(last=False)[1].file.unlink(missing_ok=True)
        await socket.send_json({"capture": name})
        await sockets.capture(socket, command, made.file, _LISTING)

    # Parts.

    def _labs(self) -> list[Json]:
        return [self._about(lab) for lab in network.every()]

    def _about(self, lab: network.Held) -> Json:
        """A network's description for pages, its scenario under the name that they know it by."""
        about = network.to_json(lab)
        scenario = Path(about["scenario"])
        if scenario.is_relative_to(self._folder.root):
            about["scenario"] = self._folder.name(scenario)
        traffic = self._traffic.get(lab.name)
        return {**about, "traffic": traffic is not None and not traffic.over}

    def _plan(self, text: str, path: str) -> Plan:
        base = self._folder.path(path).parent
        return network.plan_of(text, path, base, self._folder.root, own_code=self._may_run)

    def _begin_traffic(self, name: str, text: str, path: str) -> None:
        self._end_traffic(name)

        def failed(message: str) -> None:
            self._hub.broadcast({"type": "lab-trouble", "lab": name, "message": message})

        place = Path(self._place.name)
        self._traffic[name] = network.Traffic(
            network.find(name), self._plan(text, path), place, failed, self._changed
        )

    def _end_traffic(self, name: str) -> None:
        if (there := self._traffic.pop(name, None)) is not None:
            there.stop()

    async def _scenario(self, request: Request) -> tuple[str, str]:
        self._allowed()
        body = await body_of(request)
        text, path = body.get("text"), body.get("path") or "scenario.yaml"
        if not isinstance(text, str) or not isinstance(path, str):
            raise RequestError("text is needed")
        return text, path

    async def _asked(self, work: Any) -> Any:
        """Do it in a thread; what a lab refuses is a refusal of the request."""
        try:
            return await run_in_threadpool(work)
        except network.NoLabError as problem:
            raise RequestError(str(problem), 404) from None
        except (network.TestbedError, library.ScenarioErrors, library.ForbiddenError) as problem:
            raise RequestError(str(problem), 422) from None

    async def _entered(self, socket: WebSocket) -> network.Held | None:
        """Accept a page's socket of a network; None when it is refused."""
        if not self._may_run:
            await _refuse(socket, "networks are not allowed on this server: start it with --allow-run")
            return None
        try:
            lab = await run_in_threadpool(network.find, socket.path_params["lab"])
        except network.TestbedError as problem:
            await _refuse(socket, problem.message)
            return None
        await socket.accept()
        return lab

    def _capture(self, request: Request) -> _Capture:
        found = self._captures.get(request.path_params["capture"])
        if found is None or not found.file.is_file():
            raise RequestError("this capture is gone", 410)
        return found

    def _allowed(self) -> None:
        if not self._may_run:
            raise RequestError("networks are not allowed on this server: start it with --allow-run", 403)

    def _changed(self) -> None:
        self._hub.broadcast({"type": "labs"})


async def _refuse(socket: WebSocket, why: str) -> None:
    """Close a socket with the reason; a page learns nothing of one that is closed before it is accepted."""
    if socket.client_state is WebSocketState.CONNECTING:
        await socket.accept()
    await socket.close(_REFUSED, why[:120])
