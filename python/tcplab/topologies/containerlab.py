"""containerlab's `.clab.yml`: nodes of the kinds linux and bridge, and links between their interfaces."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from tcplab.plan.yaml_text import load_plan_yaml
from tcplab.topologies.imported import Imported, UnreadableError, name_of

_BRIDGES = ("bridge", "ovs-bridge")
# Where FRR in a container has its configuration.
_CONFIGURATION = "frr.conf"
# Keys of a node that a scenario has in other words, or needs not.
_SAID = ("kind", "image", "binds", "labels", "group", "position")


def read(text: str) -> Imported:
    """The scenario of a file's text; raises UnreadableError."""
    try:
        data = load_plan_yaml(text)
    except ValueError as problem:
        raise UnreadableError(f"is not YAML: {' '.join(str(problem).split())}") from None
    try:
        topology = data["topology"]
        made = Imported(name_of(str(data["name"])))
        wires = [_ends(link) for link in topology.get("links") or ()]
        for name, node in topology["nodes"].items():
            count = sum(name in ends for ends in wires)
            _node(made, str(name), {**_defaults(topology, node or {}), **(node or {})}, count)
        for link, ends in zip(topology.get("links") or (), wires, strict=True):
            found: dict[str, Any] = {"ends": [name_of(end) for end in ends]}
            if link.get("mtu"):
                found["mtu"] = f"{link['mtu']} B"
            made.links.append(found)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise UnreadableError(
            f"is not a topology of containerlab: {type(problem).__name__}: {problem}"
        ) from None
    return made


def _defaults(topology: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    general = topology.get("defaults") or {}
    kind = node.get("kind", general.get("kind", ""))
    return {**general, **((topology.get("kinds") or {}).get(kind) or {})}


def _ends(link: dict[str, Any]) -> list[str]:
    """The nodes of a link in its short or its long form."""
    ends = [end["node"] if isinstance(end, dict) else str(end).partition(":")[0] for end in link["endpoints"]]
    if len(ends) != 2:
        raise ValueError(f"a link has {len(ends)} ends")
    return ends


def _node(made: Imported, name: str, node: dict[str, Any], links: int) -> None:
    kind, image = str(node.get("kind", "linux")), str(node.get("image", ""))
    own = name_of(name)
    if kind in _BRIDGES:
        made.nodes.append({"name": own, "kind": "switch"})
        return
    if kind != "linux":
        made.left_out.append(f"{own}: kind {kind}, taken for a {'router' if links > 1 else 'host'}")
    binds = [str(bind).split(":") for bind in node.get("binds") or ()]
    files = {PurePosixPath(bind[1]).name: bind[0] for bind in binds if len(bind) > 1}
    configuration = files.get(_CONFIGURATION)
    is_router = "frr" in image.lower() or configuration is not None or links > 1
    found: dict[str, Any] = {"name": own, "kind": "router" if is_router else "host"}
    if configuration is not None:
        found["frr"] = configuration
    made.nodes.append(found)
    made.left_out += [f"{own}: {key}" for key in node if key not in _SAID]
