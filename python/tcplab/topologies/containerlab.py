"""containerlab's `.clab.yml`: nodes of the kinds linux and bridge, and links between their interfaces.

The file has no settings of links. They are read where people write them: as commands in a node's `exec`, and
in comments.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from tcplab.plan.yaml_text import load_mapping
from tcplab.topologies import impairments
from tcplab.topologies.imported import Imported, UnreadableError, name_of, unreadable

_BRIDGES = ("bridge", "ovs-bridge")
# Where FRR in a container has its configuration.
_CONFIGURATION = "frr.conf"
# A node and its interface.
_End = tuple[str, str]
# Keys of a node that a scenario has in other words, or needs not.
_SAID = ("kind", "image", "binds", "labels", "group", "position")


def read(text: str) -> Imported:
    """The scenario of a file's text; raises UnreadableError."""
    try:
        data = load_mapping(text)
    except ValueError as problem:
        raise UnreadableError(f"not YAML: {' '.join(str(problem).split())}") from None
    try:
        topology = data["topology"]
        made = Imported(name_of(str(data["name"])))
        wires = [(link, _ends(link)) for link in topology.get("links") or ()]
        nodes = {str(name) for name in topology["nodes"]}
        within = [(link, ends) for link, ends in wires if nodes >= {name for name, _ in ends}]
        # By node and interface.
        impaired: dict[_End, impairments.Settings] = {}
        for name, node in topology["nodes"].items():
            count = sum(name == end for _, ends in within for end, _ in ends)
            own = {**_defaults(topology, node or {}), **(node or {})}
            found = dict(_impaired(own))
            impaired |= {(str(name), interface): settings for interface, settings in found.values()}
            own["exec"] = [command for command in own.get("exec") or () if str(command) not in found]
            _node(made, str(name), own, count)
        for name, interface, settings in impairments.by_comments(text, str(data["name"])):
            impaired[name, interface] = settings
        for link, ends in within:
            made.links.append(_link(link, ends, [impaired.pop(end, {}) for end in ends]))
        made.left_out += [
            f"link {'-'.join(map(':'.join, ends))}: it leaves the topology"
            for link, ends in wires
            if (link, ends) not in within
        ]
        made.left_out += [f"{name_of(name)}: settings of {interface}" for name, interface in impaired]
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise unreadable("containerlab topology", problem) from None
    return made


def _defaults(topology: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    general = topology.get("defaults") or {}
    kind = node.get("kind", general.get("kind", ""))
    return {**general, **((topology.get("kinds") or {}).get(kind) or {})}


def _ends(link: dict[str, Any]) -> list[_End]:
    """The ends of a link in its short or its long form.

    One that leaves the topology may have a single end there, or `host`, `mgmt-net` or `macvlan` for a node.
    """
    if "endpoint" in link:
        return [_end(link["endpoint"]), (str(link.get("type", "")), str(link.get("host-interface", "")))]
    ends = [_end(end) for end in link["endpoints"]]
    if len(ends) != 2:
        raise ValueError(f"a link has {len(ends)} ends")
    return ends


def _end(end: Any) -> _End:
    if isinstance(end, dict):
        return str(end["node"]), str(end.get("interface", ""))
    node, _, interface = str(end).partition(":")
    return node, interface


def _impaired(node: dict[str, Any]) -> Iterator[tuple[str, tuple[str, impairments.Settings]]]:
    """Commands of a node that set what an interface does, with what they set."""
    for command in node.get("exec") or ():
        if found := impairments.by_command(str(command)):
            yield str(command), found


def _link(link: dict[str, Any], ends: list[_End], impaired: list[impairments.Settings]) -> dict[str, Any]:
    """A link. Settings of an end act on the packets that it sends: `forward`, `reverse`, or both if equal."""
    found: dict[str, Any] = {"ends": [name_of(name) for name, _ in ends]}
    if link.get("mtu"):
        found["mtu"] = f"{link['mtu']} B"
    forward, reverse = impaired
    if forward == reverse:
        return found | forward
    return found | {key: own for key, own in (("forward", forward), ("reverse", reverse)) if own}


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
    made.left_out += [f"{own}: {key}" for key in node if key not in _SAID and node[key]]
