"""An agent of `tcplab serve`: reached by TLS, and no program is sent."""

from __future__ import annotations

import hashlib
import json
import os
import select
import socket
import ssl
import threading
import time
from pathlib import Path

from tcplab.engine.remote.place import SERVICE_PORT, Place
from tcplab.testbed.errors import TestbedError

TOKEN = "TCPLAB_TOKEN"  # noqa: S105
"""The variable of the environment that holds the token."""
TOKEN_FILE = "TCPLAB_TOKEN_FILE"  # noqa: S105
"""The one that names a file with it instead, such as a container's secret."""
_PROTOCOL = 1
# How long it may take to connect, and how often the end of our side is looked for, seconds.
_PATIENCE, _LOOK = 10.0, 0.2
_CHUNK = 1 << 16
# The keep-alive for agents while other hosts are connected to, and its interval, seconds.
_STILL_HERE, _OFTEN = b'{"do":"clock"}\n', 1.0


class ServiceConnection:
    """A service, from the first packet to it until `close`.

    The agents' sockets are plain ones, which can be waited for together. A thread carries what passes between
    such a socket and TLS.
    """

    def __init__(self, name: str, place: Place) -> None:
        self.name = name
        self.place = place
        self.rest = b""
        self.socket, self._inner = socket.socketpair()
        self._problem: TestbedError | None = None
        self._tls: ssl.SSLSocket | None = None
        self._thread: threading.Thread | None = None
        self._started = threading.Event()

    def prepare(self) -> None:
        """Connect and show the token; raises TestbedError."""
        token = self.token()
        at = (self.place.host, self.place.port or SERVICE_PORT)
        try:
            plain = socket.create_connection(at, timeout=_PATIENCE)
        except OSError as problem:
            raise self._refused(
                str(problem.strerror or problem), "check that `tcplab serve` runs there, and its port"
            ) from None
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self._tls = self._secured(plain)
            self._tls.sendall(json.dumps({"tcplab": _PROTOCOL, "token": token}).encode() + b"\n")
            answer = self._first_line(self._tls)
        except ssl.SSLCertVerificationError as problem:
            plain.close()
            raise self._refused(problem.verify_message, "give its certificate: ?certificate=SHA256") from None
        except (OSError, ValueError) as problem:
            plain.close()
            raise self._refused(str(problem), "check that it is `tcplab serve`") from None
        if answer.get("event") != "admitted":
            raise self._refused(str(answer.get("message", "unexpected answer")), str(answer.get("hint", "")))
        self._thread = threading.Thread(target=self._carry, name=f"tls {self.name}", daemon=True)
        self._thread.start()

    def start(self) -> None:
        """Its agent runs since we were admitted: from now on it hears what is written to our socket."""
        self._started.set()

    def close(self) -> None:
        """End the connection, and with it the agent."""
        self.socket.close()
        if self._thread is not None:
            self._thread.join(_PATIENCE)
        self._inner.close()
        if self._tls is not None:
            self._tls.close()

    def problem(self) -> TestbedError | None:
        """Why it has ended, if that is known."""
        return self._problem

    def token(self) -> str:
        """Its credentials; raises TestbedError."""
        named = os.environ.get(TOKEN_FILE)
        token = os.environ.get(TOKEN)
        if not token and named:
            try:
                token = Path(named).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as problem:
                reason = getattr(problem, "strerror", None) or "is not text"
                raise TestbedError(f"{self.name}: {TOKEN_FILE}: {named}: {reason}") from None
        if not token:
            raise TestbedError(f"{self.name}: the service asks for a token", f"export {TOKEN}=...")
        return token

    def _secured(self, plain: socket.socket) -> ssl.SSLSocket:
        context = ssl.create_default_context()
        wanted = self.place.certificate
        if wanted:
            # The certificate itself is known: who has signed it says nothing more.
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        tls = context.wrap_socket(plain, server_hostname=self.place.host)
        if wanted:
            has = hashlib.sha256(tls.getpeercert(binary_form=True) or b"").hexdigest()
            if has != wanted:
                tls.close()
                raise ValueError(f"its certificate is another one: {has}")
        return tls

    def _first_line(self, tls: ssl.SSLSocket) -> dict[str, object]:
        while b"\n" not in self.rest:
            data = tls.recv(_CHUNK)
            if not data:
                raise ValueError("it closed the connection")
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        answer = json.loads(line)
        if not isinstance(answer, dict):
            raise ValueError("unexpected answer")
        return answer

    def _carry(self) -> None:
        """Until either side ends."""
        tls, inner = self._tls, self._inner
        assert tls is not None
        said = time.monotonic()
        try:
            while True:
                if not self._started.is_set() and time.monotonic() - said > _OFTEN:
                    said = time.monotonic()
                    tls.sendall(_STILL_HERE)
                ready = [inner] if tls.pending() else select.select([inner, tls], [], [], _LOOK)[0]
                if inner in ready and not tls.pending():
                    data = inner.recv(_CHUNK)
                    if not data:
                        break
                    tls.sendall(data)
                if tls in ready or tls.pending():
                    data = tls.recv(_CHUNK)
                    if not data:
                        break
                    inner.sendall(data)
        except OSError as problem:
            self._problem = self._refused(str(problem), "check the connection to it")
        finally:
            inner.shutdown(socket.SHUT_RDWR)

    def _refused(self, reason: str, hint: str) -> TestbedError:
        port = self.place.port or SERVICE_PORT
        return TestbedError(f"{self.name}: tcplab serve at {self.place.host}, port {port}: {reason}", hint)
