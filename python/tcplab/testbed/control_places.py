"""Which controls there are, and where each can run on this machine."""

from __future__ import annotations

import platform
from dataclasses import dataclass

from tcplab.cc.describe import Description, describe, shipped
from tcplab.testbed import controls


@dataclass(frozen=True)
class Place:
    """Whether a control runs somewhere, and if not, why and what fixes it."""

    runs: bool
    why: str = ""
    fix: str = ""


@dataclass(frozen=True)
class Listed:
    """A control, and where it runs."""

    name: str
    description: Description | None
    """None for a control that only the kernel has."""
    simulator: Place
    kernel: Place
    """As the kernel's own."""
    loaded: Place
    """Loaded into the kernel, as `tl_NAME`."""


_ONLY_KERNEL = Place(False, "the kernel has it; tcplab does not have a file of it")


def everywhere() -> list[Listed]:
    """All controls, tcplab's first, then those that only the kernel has."""
    there_are = controls.available()
    modules = controls.loadable(platform.release())
    hello = controls.loader()
    obstacle = hello["obstacle"] or hello["not_built"]
    loading = Place(False, obstacle["message"], obstacle["hint"]) if obstacle else Place(True)
    own = shipped()

    def kernel(name: str) -> Place:
        known = controls.kernel_name(name)
        if known in there_are:
            return Place(True, f"as {known}" if known != name else "")
        if known in modules:
            return Place(False, "its module is not loaded", f"sudo modprobe tcp_{known}")
        return Place(False, f"Linux {platform.release()} here has none")

    found = [Listed(name, describe(name), Place(True), kernel(name), loading) for name in own]
    others = {*there_are, *modules} - {controls.kernel_name(name) for name in own}
    found += [
        Listed(name, None, _ONLY_KERNEL, kernel(name), _ONLY_KERNEL)
        for name in sorted(others)
        if not name.startswith("tl_")
    ]
    return found
