"""Who may talk to the server: the token, the names it answers to, the pages that may call it.

The token stands in the fragment of the printed address, which browsers send to no server and put in no
referrer. The page hands it in once and holds a cookie from then on (HttpOnly, SameSite=Strict).
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# No page of ours needs anything from elsewhere. Scripts come from files alone; the styles that CodeMirror
# makes carry the page's nonce.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)
# A report is a page with scripts of its own: without our origin it reads no cookie and calls no server.
REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
)
# Served without the token: the page itself, which holds nothing of the user's, and its log-in.
_OPEN = ("/", "/api/login")
_OPEN_FOLDER = "/assets/"


@dataclass(frozen=True)
class Gate:
    """The token and the names by which this server may be addressed."""

    token: str
    port: int
    hosts: frozenset[str] = field(default_factory=frozenset)
    """Host names and addresses, lower case, without port; empty: any."""
    base_path: str = ""

    @property
    def cookie(self) -> str:
        """The cookie's name: cookies know no ports, so two servers on one machine need two names."""
        return f"tcplab-{self.port}"

    def knows(self, token: str | None) -> bool:
        """Whether this is the token, in a time that does not depend on how much of it is right."""
        return hmac.compare_digest((token or "").encode("utf-8", "replace"), self.token.encode())

    def admits(self, headers: Headers) -> bool:
        """Whether a request carries the token, in the cookie or as a bearer's."""
        scheme, _, value = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.knows(value.strip()):
            return True
        try:
            jar = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return False
        return self.cookie in jar and self.knows(jar[self.cookie].value)

    def host_allowed(self, headers: Headers) -> bool:
        """Whether the address asked for is ours: a name that was rebound to us is not."""
        name = host_of(headers.get("host", ""))
        return bool(name) and (not self.hosts or name in self.hosts or is_loopback(name))

    def origin_allowed(self, headers: Headers) -> bool:
        """Whether the page that calls is ours; programs send no origin."""
        origin = headers.get("origin")
        if origin is None:
            return True
        return urlsplit(origin).netloc.lower() == headers.get("host", "").lower()


class Guard:
    """Refuses, before anything else looks at a request, what the gate does not let in."""

    def __init__(self, app: ASGIApp, gate: Gate) -> None:
        self.app = app
        self.gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request or WebSocket."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if not self.gate.host_allowed(headers):
            await _refuse(
                scope,
                receive,
                send,
                403,
                "the Host header is not a name of this server; add it with --server-name",
            )
        elif not self.gate.origin_allowed(headers):
            await _refuse(scope, receive, send, 403, "cross-origin request refused")
        elif not (is_open(scope, self.gate.base_path) or self.gate.admits(headers)):
            await _refuse(scope, receive, send, 401, "the token is missing or wrong")
        else:
            await self.app(scope, receive, _with_headers(send))


def is_open(scope: Scope, base_path: str) -> bool:
    """Whether a path is served without the token."""
    if scope["type"] != "http":
        return False
    path = str(scope["path"]).removeprefix(base_path) or "/"
    return path in _OPEN or (path.startswith(_OPEN_FOLDER) and ".." not in path)


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["referrer-policy"] = "no-referrer"
            headers["x-content-type-options"] = "nosniff"
            headers["cross-origin-resource-policy"] = "same-origin"
            headers["cross-origin-opener-policy"] = "same-origin"
            headers.setdefault("cache-control", "no-store")
            headers.setdefault("content-security-policy", POLICY.format(nonce=secrets.token_urlsafe(16)))
        await send(message)

    return sending


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int, message: str) -> None:
    if scope["type"] == "websocket":
        # Closed before it is accepted, the handshake is answered with 403.
        await receive()
        await send({"type": "websocket.close", "code": 4401 if status == 401 else 4403, "reason": message})
        return
    await JSONResponse({"error": message}, status)(scope, receive, _with_headers(send))


def host_of(text: str) -> str:
    """The host name of a Host header, lower case, without its port."""
    try:
        return (urlsplit(f"//{text}").hostname or "").lower()
    except ValueError:
        return ""


def is_loopback(name: str) -> bool:
    """Whether a host name means this machine and no other."""
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def kept_token() -> str:
    """The user's token: from TCPLAB_UI_TOKEN, or made once and kept where only the user can read it.

    It outlives the server, so that open pages go on when it is started again.
    """
    given = os.environ.get("TCPLAB_UI_TOKEN", "")
    if given:
        return given
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    path = state / "tcplab" / "ui-token"
    try:
        found = path.read_text(encoding="ascii").strip()
        if len(found) >= 32 and path.stat().st_mode & 0o077 == 0:
            return found
    except (OSError, UnicodeDecodeError):
        pass
    token = secrets.token_urlsafe(32)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(token + "\n")
    except OSError:
        # A home that cannot be written: the token is good for as long as the server runs.
        pass
    return token
