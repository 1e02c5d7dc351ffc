"""From pydantic's findings to errors a person can act on."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from .document import Document, Path
from .errors import ScenarioError
from .flows import KINDS
from .model import Scenario
from .quantity import show
from .where import written

# What other tools call the same thing.
_SYNONYMS = {
    "bandwidth": "rate",
    "bw": "rate",
    "speed": "rate",
    "latency": "delay",
    "buffer": "queue",
    "limit": "queue",
    "congestion_control": "cc",
    "congestion": "cc",
    "algorithm": "cc",
    "time": "duration",
    "length": "duration",
    "parallel": "streams",
    "connections": "streams",
    "clients": "streams",
    "streams": "clients",
    "count": "iterations",
    "messages": "iterations",
    "type": "kind",
    "source": "from",
    "src": "from",
    "destination": "to",
    "dst": "to",
    "size": "bytes",
    "warmup": "omit",
    "runs": "repeat",
    "repetitions": "repeat",
    "sampling": "sample",
    "drop": "loss",
    "iw": "initial_window",
    "initcwnd": "initial_window",
    "sndbuf": "send_buffer",
    "rcvbuf": "receive_buffer",
    "title": "name",
    "version": "tcplab",
    "begin": "start",
    "end": "stop",
    "delay": "rtt",
    "rtt": "delay",
}

_EXAMPLES = {
    "tcplab": "tcplab: 1",
    "name": "name: my-test",
    "rate": "rate: 100 Mbit/s",
    "rtt": "rtt: 50 ms",
    "limit": "limit: 1 BDP",
    "kind": "kind: tcp",
    "ends": "ends: [a, b]",
    "request": "request: 1 kB",
    "response": "response: 100 kB",
    "network": "network: {path: {rate: 100 Mbit/s, rtt: 50 ms}}",
    "flows": "flows: [{name: bulk, kind: tcp}]",
    "amount": "amount: 2 ms",
    "p": "p: 1 %",
    "r": "r: 25 %",
    "on": "on: 1 s",
    "off": "off: 1 s",
}


@dataclass(frozen=True)
class Mistake:
    """An error, and the path in the text to leave out so that the rest can be checked further."""

    path: Path
    error: ScenarioError
    unknown_key: bool = False


def errors(found: ValidationError, document: Document, model: type[BaseModel] = Scenario) -> list[Mistake]:
    """The mistakes of the text's structure; `model` is what the text should be."""
    return [_error(detail, document, model) for detail in found.errors(include_url=False)]


def _error(detail: ErrorDetails, document: Document, model: type[BaseModel]) -> Mistake:
    location = detail["loc"]
    at_key = bool(location) and location[-1] == "[key]"
    steps = _without_tag(location[:-1] if at_key else location)
    path = written(document, steps)
    kind = detail["type"]
    context: dict[str, Any] = detail.get("ctx", {})
    message, suggestion = "", ""
    match kind:
        case "scenario":
            message, suggestion = context["message"], context["suggestion"]
        case "extra_forbidden":
            key = str(steps[-1])
            known = _keys(location[:-1], model)
            message, suggestion = f"unknown key {show(key)}", _near_key(key, known, document.node(path[:-1]))
            at_key = True
        case "missing":
            key = str(steps[-1])
            message, suggestion = f"{show(key)} is missing", _EXAMPLES.get(key, f"{key}: ...")
            if steps[-2:] == ("cc", "name"):
                suggestion = "name: cubic"
            path = written(document, steps[:-1])
            error = document.error(path, message, suggestion, at_key=True)
            return Mistake((*path, key), error)
        case "union_tag_not_found":
            message, suggestion = "the flow does not say its `kind`", "kind: tcp"
            error = document.error(path, message, suggestion, at_key=True)
            return Mistake(path, error)
        case "union_tag_invalid":
            tag = context.get("tag", "")
            message = f"{show(tag)} is not a kind of flow: {_list(KINDS)}"
            suggestion = _near_word(str(tag), list(KINDS))
            return Mistake(path, document.error((*path, "kind"), message, suggestion))
        case "literal_error":
            words = re.findall(r"'([^']*)'", str(context.get("expected", "")))
            read = detail["input"]
            message = f"{show(read)} is not {_list(words, 'or')}"
            suggestion = words[0] if len(words) == 1 else _near_word(str(read), words)
        case "model_type" | "model_attributes_type" | "dict_type":
            message = f"{show(detail['input'])} stands where a mapping of keys belongs"
        case "list_type":
            message = f"{show(detail['input'])} stands where a list belongs"
        case "too_short" | "too_long":
            least, most = context.get("min_length"), context.get("max_length")
            bound = f"at least {least}" if kind == "too_short" else f"at most {most}"
            message = f"the list is too {kind[4:]}: it takes {bound}"
        case _:
            message = f"{show(detail['input'])}: {detail['msg'][:1].lower()}{detail['msg'][1:]}"
    error = document.error(path, message, suggestion, at_key=at_key)
    return Mistake(path, error, unknown_key=kind == "extra_forbidden")


def _without_tag(location: tuple[int | str, ...]) -> Path:
    """The location without the kind pydantic puts behind a flow's number."""
    if len(location) > 2 and location[0] == "flows" and location[2] in KINDS:
        return (*location[:2], *location[3:])
    return location


def _keys(location: tuple[int | str, ...], top: type[BaseModel]) -> list[str]:
    """The keys that may stand at a location."""
    model: Any = top
    for depth, step in enumerate(location):
        if isinstance(step, int):
            continue
        if depth == 2 and location[0] == "flows" and step in KINDS:
            model = KINDS[step]
            continue
        for name, info in model.model_fields.items():
            if step in (name, info.alias):
                model = next(_models(info.annotation), model)
                break
    return [info.alias or name for name, info in model.model_fields.items()]


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _near_key(key: str, known: list[str], around: Any) -> str:
    """The key probably meant: another name for the same, or near in spelling; not given yet if possible."""
    given = around.value if around is not None and isinstance(around.value, dict) else {}
    free = [name for name in known if name not in given]
    folded = key.lower().replace("-", "_").replace(" ", "_")
    if folded in free:
        return folded
    if _SYNONYMS.get(folded) in free:
        return _SYNONYMS[folded]
    near = difflib.get_close_matches(folded, free, n=1, cutoff=0.6)
    return next(iter(near or difflib.get_close_matches(folded, known, n=1, cutoff=0.6)), "")


# Other words for the same.
_WORDS = {
    "yes": "on",
    "true": "on",
    "no": "off",
    "false": "off",
    "icmp": "ping",
    "http": "request",
    "rpc": "request",
    "pingpong": "echo",
    "ping-pong": "echo",
    "web": "request",
    "bulk": "tcp",
    "gaussian": "normal",
    "fifo": "droptail",
    "poisson": "exponential",
}


def _near_word(word: str, words: list[str]) -> str:
    """The word probably meant, or empty."""
    word = word.lower()
    if _WORDS.get(word) in words:
        return _WORDS[word]
    return next(iter(difflib.get_close_matches(word, words, n=1, cutoff=0.5)), "")


def _list(words: Iterable[str], last: str = "and") -> str:
    quoted = [f"`{word}`" for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} {last} {quoted[-1]}"
