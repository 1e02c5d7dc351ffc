"""`run.plot`: a run's figures, for notebooks and scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from tcplab.figures.model import Figure
    from tcplab.results.run import Run

Library = Literal["plotly", "matplotlib"]


class Plot:
    """Figures of one run: plotly figures, or matplotlib's when asked for."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def timeseries(self, repetition: int | None = None, *, library: Library = "plotly") -> Any:
        """Goodput, congestion window, RTT and queue length on one time axis."""
        from tcplab.figures.runs.timeseries import timeseries

        return _drawn(timeseries(self._run, self._known(repetition)), library)

    def gauges(self, repetition: int | None = None, *, library: Library = "plotly") -> Any:
        """Plot the gauges of the congestion controls over time."""
        from tcplab.figures.runs.gauges import gauges

        return _drawn(gauges(self._run, self._known(repetition)), library)

    def failures(self, repetition: int | None = None, *, library: Library = "plotly") -> Any:
        """Links that fail, what routers did, paths, goodput, RTT and timeouts on one time axis."""
        from tcplab.figures.runs.failures import failures

        return _drawn(failures(self._run, self._known(repetition)), library)

    def cdf(self, *, library: Library = "plotly") -> Any:
        """Distributions of RTT and queueing delay over the steady state of all repetitions."""
        from tcplab.figures.runs.distributions import cdf

        return _drawn(cdf(self._run), library)

    def _known(self, repetition: int | None) -> int | None:
        there = self._run.repetitions
        if repetition is not None and repetition not in there:
            raise ValueError(f"no repetition {repetition}: the run has {', '.join(map(str, there))}")
        return repetition


def _drawn(figure: Figure, library: Library) -> Any:
    if library == "matplotlib":
        from tcplab.figures.draw_matplotlib import draw as draw_printed

        return draw_printed(figure)
    from tcplab.figures.draw_plotly import draw

    return draw(figure)
