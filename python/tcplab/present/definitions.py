"""Definitions of the terms in a report's tables, whose headings link to them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Definition:
    """A term of the glossary."""

    term: str
    meaning: str
    labels: tuple[str, ...] = ()
    """Headings of tables, or their first words, that mean it; empty: the term itself."""

    @property
    def anchor(self) -> str:
        """The id of its place on a page."""
        return "term-" + "".join(c if c.isalnum() else "-" for c in self.term.lower()).strip("-")


DEFINITIONS = (
    Definition(
        "Goodput",
        "Payload delivered in order to the receiving application, per second. The link carries "
        "more: headers, and retransmissions.",
    ),
    Definition(
        "CC",
        "Congestion control: the algorithm that sets the congestion window. Other flows show their kind.",
    ),
    Definition(
        "Retransmitted",
        "Segments the sender retransmitted, of all data segments it sent. A retransmission need not "
        "mean that a packet was lost.",
    ),
    Definition(
        "Scope",
        "Figures are of the steady state: from the end of the warm-up to the end of the flow. Only "
        "Converged and Starved are of the whole run.",
    ),
    Definition(
        "Dropped",
        "Packets dropped at the bottleneck: by its queue, by a policer, or because the link was down.",
    ),
    Definition(
        "Lost",
        "For UDP and ping: packets that never arrived. In the table of bottlenecks: packets the "
        "link's impairments lost, whoever sent them.",
    ),
    Definition(
        "RTT",
        "Smoothed round-trip time as the sending TCP keeps it, sampled at even intervals; for pings "
        "and requests, each measured time.",
    ),
    Definition(
        "Queueing",
        "How long the packets that left the queue of the flow's bottleneck had waited, whoever sent them; "
        "one that found the queue empty counts as none.",
    ),
    Definition(
        "Utilization",
        "Frame bytes the bottleneck carried, of what its rate allows.",
    ),
    Definition(
        "Jain",
        "Jain's fairness index of the goodput of the flows that share a bottleneck, while all are in "
        "their steady state. It is 1 when all get the same, 1/n when one gets everything. Where one flow has "
        "the bottleneck to itself, it is that of the flow's streams.",
    ),
    Definition(
        "Fair share",
        "A flow's goodput, of its max-min share of the bottleneck's rate; a flow with a rate of its own "
        "is entitled to no more than that rate.",
    ),
    Definition(
        "Verdict",
        "Fair: 80 to 125 % of the fair share. Above share and squeezed: more and less. Starved: less "
        "than 5 % of it for a tenth of the time or more.",
    ),
    Definition(
        "Limited by",
        "The limit of the sender for most of its time, such as the link, loss, marks (ECN), the receive "
        "window, the send buffer or the application.",
    ),
    Definition(
        "Window",
        "Effective window: goodput times mean RTT. A flow limited by its window has just this one.",
    ),
    Definition(
        "Change",
        "Difference from the baseline's mean, in percent; * where p < 0.05 by Welch's t-test, corrected by "
        "Holm's method.",
    ),
    Definition(
        "CPU",
        "CPU of the sender or the receiver while the flow was active; 1 is one core.",
    ),
    Definition(
        "Converged",
        "Time from the last start of a bulk TCP flow on the bottleneck until each stays within 20 % "
        "of the fair share for 5 s; – when that never happens. Goodput is "  # noqa: RUF001
        "taken over the second before. The fair share is the mean of the flows then active.",
    ),
    Definition(
        "Starved",
        "Time that bulk TCP flows spent in episodes of 1 s or longer with less than 5 % of the fair "
        "share, added up over them.",
    ),
    Definition(
        "Warm-up",
        "The start of each flow that is left out of the figures. The time series show it all the same.",
    ),
    Definition(
        "±, n and grade",
        "± is half the width of the confidence interval of the mean. n counts repetitions. The grade "
        "is high with at least 3 repetitions that vary by at most 10 % (coefficient of variation of "
        "the goodput). It is medium with 3 that vary by at most 30 % or 2 by at most 10 %, else low. "
        "Deterministic: every repetition gave the same value, so that there is no interval, grade, "
        "p or effect size.",
        ("n", "Grade"),
    ),
)

_ANCHORS = {label: one.anchor for one in DEFINITIONS for label in one.labels or (one.term,)}


def anchor(label: str) -> str:
    """The id of the definition of a heading such as `RTT p95`; empty if there is none."""
    return _ANCHORS.get(label) or _ANCHORS.get(label.partition(" ")[0], "")
