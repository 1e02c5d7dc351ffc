"""Contents of requests, and how requests are rejected."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request

# A scenario of the largest size, escaped.
_MAX_BODY = 4 << 20


class RequestError(Exception):
    """A request that is refused, with HTTP's status."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


async def body_of(request: Request) -> dict[str, Any]:
    """A request's JSON object, if it is not too large; raises RequestError."""
    if "application/json" not in request.headers.get("content-type", ""):
        raise RequestError("the body must be JSON", 415)
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > _MAX_BODY:
            raise RequestError(f"the request is larger than {_MAX_BODY >> 20} MiB", 413)
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise RequestError("the body must be JSON") from None
    if not isinstance(body, dict):
        raise RequestError("the body must be a JSON object")
    return body
