"""Options that are spelled differently now. The old spellings work in this version, with a warning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# By command: the old spelling and the one to use.
_OUT = {"--out": "--output"}
_PCAP = {"-f": "--flow", "-l": "--limit"}
OLD: Mapping[str, Mapping[str, str]] = {
    "run": _OUT,
    "study run": _OUT,
    "study query": {"--csv": "--format=csv"},
    "tune": _OUT,
    "topo capture": {**_OUT, "--at": "--node"},
    "ui": {"--name": "--server-name"},
    "show": {"-l": "--limit"},
    "echo run": {"--confidence": "--level", "--report": "--output", "-n": "--iterations"},
    "pcap flows": _PCAP,
    "pcap packets": _PCAP,
    "pcap plot": {"-f": "--flow"},
    "pcap ladder": _PCAP,
    "pcap segmentation": _PCAP,
}


def deprecated(old: str, new: str) -> str:
    """Warn of an old spelling."""
    return f"{old} is deprecated, use {new}; the next version will not accept it"


def respelled(command: str, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of a command line as they are spelled now, and a warning for each that was not."""
    known = OLD.get(command, {})
    found: list[str] = []
    warnings: list[str] = []
    for index, word in enumerate(words):
        if word == "--":
            return [*found, *words[index:]], warnings
        option, equals, value = word.partition("=")
        if option in known:
            warnings.append(deprecated(option, known[option]))
            word = known[option] + equals + value
        found.append(word)
    return found, warnings
