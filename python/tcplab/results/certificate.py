"""The certificate of a network's links: what was asked of them and measured before traffic, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tcplab.quantities import plural, rate_text, time_text

Json = dict[str, Any]


def described(certificate: Json) -> str:
    """The verified properties, and why others were not, in one line."""
    found = [one for direction in certificate["directions"] for one in direction["measured"]]
    links = len({one["link"] for one in certificate["directions"]})
    left = [f"{one['what']}: {one['reason']}" for one in found if one["verdict"] == "not_verified"]
    why = "; ".join(dict.fromkeys(left))
    rest = f"; {len(left)} of {len(found)} properties could not be verified ({why})" if left else ""
    return f"{plural(links, 'link')} verified in {certificate['seconds']:.1f} s{rest}"


def deviations(certificate: Json) -> Iterator[str]:
    """The properties that are off, one clause each."""
    for direction in certificate["directions"]:
        for found in direction["measured"]:
            if found["verdict"] == "off":
                what = found["what"]
                asked = shown(what, found["asked"])
                seen = "nothing arrives" if found["measured"] is None else shown(what, found["measured"])
                yield f"{direction['link']} {direction['direction']}: {what} {seen}, asked {asked}"


def shown(what: str, value: float | None) -> str:
    """A figure of a certificate with its unit."""
    if value is None:
        return "-"
    if what == "delay":
        return time_text(float(f"{value * 1e9:.4g}"))
    if what == "rate":
        return rate_text(float(f"{value:.4g}"))
    if what == "loss":
        return f"{100 * value:.3g} %"
    return f"{value:.0f} packets"
