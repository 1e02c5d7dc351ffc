"""Where a figure's lines come from: one repetition of a run, with colours and names for its flows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from tcplab.analysis.samples import Samples
from tcplab.figures.palette import Style, style
from tcplab.plan.paths import Hop

# A bottleneck that several flows share has no flow's colour.
_SHARED = Style("#666666")


@dataclass(frozen=True)
class Source:
    """One repetition of a run, and how its flows appear in a figure."""

    samples: Samples
    styles: Mapping[str, Style]
    labels: Mapping[str, str] = field(default_factory=dict)
    """A flow's legend entry, where it is not the flow's name."""
    shared_style: Style = _SHARED
    """Of the only bottleneck of several flows."""
    suffix: str = ""
    """The label that distinguishes it from other runs."""
    chosen: tuple[str, ...] | None = None
    """Only these flows; None: all."""

    def label(self, flow: str) -> str:
        """The flow's name in the legend."""
        return self.labels.get(flow, flow)

    @property
    def flows(self) -> list[str]:
        """Flows that were active."""
        names = self.samples.flow_names if self.chosen is None else self.chosen
        return [flow for flow in names if self.samples.span(flow)]

    def only(self, flows: Sequence[str]) -> Source:
        """The same with fewer flows."""
        return replace(self, chosen=tuple(flows))

    def bottlenecks(self) -> dict[Hop, list[str]]:
        """The bottlenecks of the flows, each with the flows that it limits."""
        return self._limited

    @cached_property
    def _limited(self) -> dict[Hop, list[str]]:
        found: dict[Hop, list[str]] = {}
        for flow in self.flows:
            for hop in self.samples.bottlenecks(flow):
                found.setdefault(hop, []).append(flow)
        return found

    def shared(self) -> dict[Hop, Style]:
        """The bottlenecks of several flows with their style: a single one is grey, several have colours."""
        hops = [hop for hop, flows in self.bottlenecks().items() if len(flows) > 1]
        if len(hops) == 1:
            return {hops[0]: self.shared_style}
        first = len(self.styles)
        return {hop: Style(style(first + i).color, self.shared_style.dash) for i, hop in enumerate(hops)}


def flow_styles(names: Iterable[str]) -> dict[str, Style]:
    """A style per flow, the same in every panel of every figure."""
    return {name: style(index) for index, name in enumerate(names)}
