"""A study's figures: those its file asks for, or those that suit its axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
import polars as pl

from tcplab.analysis.laws import cubic_response, link_limit, mathis, pftk, window_limit
from tcplab.analysis.limits import path_of
from tcplab.analysis.statistics import DETERMINISTIC
from tcplab.figures.ellipse import spread
from tcplab.figures.model import Chart, Heatmap, Outline, Trace
from tcplab.figures.palette import style
from tcplab.plan.kinds import kind_of
from tcplab.quantities import bytes_text
from tcplab.study.definition import AXES_NEEDED, Plot
from tcplab.study.fairness_figure import over_time
from tcplab.study.grid import label_of, slug
from tcplab.study.load import Study, engines_of, varied_axes
from tcplab.study.map_figure import best_by_field
from tcplab.study.metrics import METRICS
from tcplab.study.metrics import title as metric_title
from tcplab.study.queue_figure import DELAY, of_all, queue_over_time
from tcplab.study.scale import amounts, metric_scale
from tcplab.study.store import Store
from tcplab.study.summary import CellSummary, Change, StudySummary, flows_of

# Bars beyond this many have no room for their names.
_MAX_BARS = 40
_MAX_LINES = 12
# Charts of one plot, of which the report shows one at a time.
_MAX_CHOICES = 100
# Ratio of the largest value to the smallest from which an axis is logarithmic: one long queue would press all
# others into a corner.
_WIDE = 20


def figures(
    study: Study, summary: Callable[[str | None], StudySummary], results: pl.DataFrame, store: Store
) -> list[Chart | Heatmap]:
    """Every chart of a study. Of the several that a plot has, each is named by its values."""
    return [
        replace(chart, name=f"{chart.name}-{index + 1}_{slug(values)}", title=chart.title + of_all(values))
        if (values := family.values(index))
        else chart
        for family in families(study, summary, results, store)
        for index, chart in enumerate(family.charts)
        if chart is not None
    ]


@dataclass(frozen=True)
class Family:
    """The charts of one plot: one for each combination of the values of some axes, or a single one."""

    axes: Mapping[str, tuple[str, ...]]
    """The labels of each axis."""
    charts: tuple[Chart | Heatmap | None, ...]
    """By combination, the last axis varying first; None: no cell has a value."""
    first: int
    """The one that is shown first: that of the baseline, if there is one."""

    def values(self, index: int) -> dict[str, str]:
        """The values of the axes that a chart is of."""
        return dict(zip(self.axes, list(product(*self.axes.values()))[index], strict=True))


def families(
    study: Study, summary: Callable[[str | None], StudySummary], results: pl.DataFrame, store: Store
) -> list[Family]:
    """The figures of a study that have something to show; `summary` answers for one flow, or all."""
    plots = study.file.plots or _suitable(study, summary(None))
    made = (
        _family(with_axes(study, plot), study, summary, results, store, number)
        for number, plot in enumerate(plots, start=1)
    )
    return [family for family in made if any(family.charts)]


def _family(
    plot: Plot,
    study: Study,
    summary: Callable[[str | None], StudySummary],
    results: pl.DataFrame,
    store: Store,
    number: int,
) -> Family:
    def rows_of(flow: str | None, where: Mapping[str, object]) -> list[CellSummary]:
        return [row for row in summary(flow).cells if _selected(row, where)]

    each = [axis for axis in plot.each if axis not in plot.where]
    cells = rows_of(plot.flow, plot.where)
    axes = {axis: tuple(dict.fromkeys(_label(row, axis) for row in cells)) for axis in each}
    choices = [dict(zip(axes, labels, strict=True)) for labels in product(*axes.values())]
    charts = tuple(
        _chart(plot, study, partial(rows_of, where={**plot.where, **choice}), results, store, number)
        for choice in choices
    )
    baseline = {axis: label_of(value) for axis, value in study.file.baseline.items() if axis in axes}
    known = [index for index, chart in enumerate(charts) if chart is not None]
    of_baseline = (index for index in known if baseline.items() <= choices[index].items())
    return Family(axes, charts, next(of_baseline, known[0] if known else 0))


def _chart(
    plot: Plot,
    study: Study,
    rows_of: Callable[[str | None], list[CellSummary]],
    results: pl.DataFrame,
    store: Store,
    number: int,
) -> Chart | Heatmap | None:
    name = "-".join([str(number), plot.kind, plot.metric, *([plot.flow] if plot.flow else [])])
    rows = rows_of(plot.flow)
    match plot.kind:
        case "curve":
            return _curve(plot, rows, study, name)
        case "laws":
            return _with_laws(plot, rows, study, name)
        case "heatmap":
            return _heatmap(plot, rows, study, name)
        case "map":
            titles = tuple(axis_title(study, axis) for axis in (plot.over, plot.by) if axis is not None)
            return best_by_field(plot, rows, study.file.baseline, name, titles)
        case "improvement":
            return _improvement(plot, rows, name)
        case "tradeoff":
            # `goodput` is the key's default, and the other axis.
            delay = "rtt_p95" if plot.metric == "goodput" else plot.metric
            return _cloud(plot, rows, results, name, delay, falling=True)
        case "cpu":
            return _cloud(plot, rows, results, name, "cpu_sender", falling=False)
        case "fairness":
            return over_time(rows, store, name)
        case "queue":
            shown = DELAY if plot.metric == "goodput" else plot.metric
            return queue_over_time(rows, store, shown, name, fixed=plot.where)
        case _ if plot.by == "flow":
            return _bars(plot, [(flow, row) for flow in flows_of(results) for row in rows_of(flow)], name)
        case _:
            return _bars(plot, [(_label(row, plot.by), row) for row in rows], name)


def with_axes(study: Study, plot: Plot) -> Plot:
    """The plot with the axes that its kind needs and it does not name: the first that vary, amounts first."""
    if plot.kind not in AXES_NEEDED:
        return plot
    free = [axis for axis in varied_axes(study) if axis not in (plot.over, plot.by, *plot.where, *plot.each)]
    free.sort(key=lambda axis: not _is_amount(study, axis))
    over = plot.over or next(iter(free), None)
    by = plot.by
    if plot.kind in ("heatmap", "map") and by is None:
        by = next((axis for axis in free if axis != over), None)
    return replace(plot, over=over, by=by)


def _suitable(study: Study, summary: StudySummary) -> Iterator[Plot]:
    """Figures for the axes there are."""
    varied = varied_axes(study)
    scaled = [name for name in varied if _is_amount(study, name)]
    named = [name for name in varied if name not in scaled]
    full = not isinstance(study.file.cells, list)
    many = _curves(study, scaled, named) if study.file.cells == "full" else None
    for metric in ("goodput", "retransmission_rate", "rtt_mean"):
        if not any(row.figures[metric].known for row in summary.cells):
            continue
        if full and len(varied) <= 2 and scaled:
            yield Plot(
                kind="curve", metric=metric, over=scaled[0], by=next(iter([*named, *scaled[1:]]), None)
            )
        elif full and len(varied) <= 2 and varied:
            yield Plot(kind="bars", metric=metric, over=varied[0], by=next(iter(varied[1:]), None))
        elif many is not None:
            yield replace(many, metric=metric)
        else:
            yield Plot(kind="bars", metric=metric)
    if full and len(varied) == 2:
        yield Plot(kind="heatmap", metric="goodput", over=varied[0], by=varied[1])
    if any(row.changes for row in summary.cells):
        yield Plot(kind="improvement", metric="goodput")
    if any(row.figures["rtt_p95"].known for row in summary.cells):
        yield Plot(kind="tradeoff", by=next(iter(named), None))
    if any(row.figures["jain"].known for row in summary.cells):
        yield Plot(kind="fairness")
    if any(row.figures["cpu_sender"].known for row in summary.cells):
        yield Plot(kind="cpu", by=next(iter(named), None))


def _curves(study: Study, scaled: Sequence[str], named: Sequence[str]) -> Plot | None:
    """A curve over the longest axis of amounts, for one value of the third and further axes at a time."""
    sizes = {axis.name: len(axis.values) for axis in study.axes} | {"engine": len(engines_of(study.file))}
    if len(scaled) + len(named) < 3 or not scaled:
        return None
    over = max(scaled, key=lambda axis: sizes[axis])
    others = [axis for axis in (*named, *scaled) if axis != over]
    by = next((axis for axis in others if sizes[axis] <= _MAX_LINES), None)
    each = tuple(axis for axis in others if axis != by)
    if math.prod(sizes[axis] for axis in each) > _MAX_CHOICES:
        return None
    return Plot(kind="curve", over=over, by=by, each=each)


def _is_amount(study: Study, name: str) -> bool:
    axis = study.axis(name)
    return axis is not None and amounts([value.label for value in axis.values]) is not None


def _selected(row: CellSummary, where: Mapping[str, object]) -> bool:
    labels = {**row.cell.labels, "engine": row.cell.engine, "group": row.cell.group}
    return all(labels.get(axis) == label_of(label) for axis, label in where.items())


def _label(row: CellSummary, axis: str | None) -> str:
    if axis is None:
        return ""
    if axis == "group":
        return row.cell.group or "baseline"
    return row.cell.engine if axis == "engine" else row.cell.labels.get(axis, "unchanged")


def _has(row: CellSummary, axis: str | None) -> bool:
    return axis in ("engine", "group") or axis in row.cell.labels


def _varied(rows: Sequence[CellSummary]) -> frozenset[str]:
    """The axes in which these cells differ; of a single cell, all."""
    labels: dict[str, set[str | None]] = {axis: set() for row in rows for axis in row.cell.labels}
    for axis, found in labels.items():
        found.update(row.cell.labels.get(axis) for row in rows)
    return frozenset(axis for axis, found in labels.items() if len(found) > 1 or len(rows) == 1)


def _rest(row: CellSummary, axes: frozenset[str], *but: str | None) -> str:
    """The parameters that distinguish a cell from others, of these axes."""
    parts = [
        _named(axis, label) for axis, label in row.cell.labels.items() if axis in axes and axis not in but
    ]
    return ", ".join(parts) or row.cell.group or "baseline"


def _named(axis: str | None, label: str) -> str:
    """A label as it stands in a legend: a plain number with the name of its axis."""
    try:
        float(label)
    except ValueError:
        return label
    return f"{axis} {label}" if axis else label


def _bars(plot: Plot, rows: Sequence[tuple[str, CellSummary]], name: str) -> Chart | None:
    """A bar for each cell; those of one series, which stands before the cell, have one color."""
    rows = [(key, row) for key, row in rows if row.figures[plot.metric].known]
    if not rows:
        return None
    shown = rows[:_MAX_BARS]
    axes = _varied([row for _, row in rows])
    positions = list(dict.fromkeys(_rest(row, axes, plot.by) for _, row in shown))
    series = list(dict.fromkeys(key for key, _ in shown))
    metric = METRICS[plot.metric]
    scale = metric_scale(metric.unit, metric.share, [row.figures[plot.metric].value for _, row in rows])
    traces = tuple(
        _trace(
            _named(plot.by, key) or metric.name,
            [(float(positions.index(_rest(row, axes, plot.by))), row) for own, row in shown if own == key],
            plot.metric,
            scale.divisor,
            index,
        )
        for index, key in enumerate(series)
    )
    more = (f"{len(rows) - len(shown)} more cells are in the table.",) if len(rows) > len(shown) else ()
    return Chart(
        kind="bars",
        name=name,
        title=metric_title(plot.metric) + _whose(plot) + of_all(plot.where),
        x_label="",
        y_label=_axis_label(plot.metric, scale.unit),
        traces=traces,
        categories=tuple(positions),
        notes=more,
    )


def _curve(plot: Plot, rows: Sequence[CellSummary], study: Study, name: str) -> Chart | None:
    rows = [row for row in rows if row.figures[plot.metric].known and _has(row, plot.over)]
    if plot.over is None or not rows:
        return None
    labels = list(dict.fromkeys(_label(row, plot.over) for row in rows))
    # A single value, as of a quick run, makes no curve.
    if len(labels) == 1 and len(rows) > 1:
        return None
    axes = _varied(rows)
    scaled = amounts(labels)
    at = dict(zip(labels, scaled.values if scaled else range(len(labels)), strict=True))
    lines: dict[str, list[tuple[float, CellSummary]]] = {}
    one_group = len({row.cell.group for row in rows}) == 1
    for row in rows:
        key = _named(plot.by, _label(row, plot.by)) if plot.by else _rest(row, axes, plot.over)
        rest = _rest(row, axes, plot.over, plot.by) if plot.by else ""
        rest = "" if one_group and rest == row.cell.group else rest
        whole = f"{key}, {rest}" if plot.by and rest not in ("", "baseline") else key
        lines.setdefault(whole, []).append((float(at[_label(row, plot.over)]), row))
    metric = METRICS[plot.metric]
    values = [row.figures[plot.metric].value for row in rows]
    scale = metric_scale(metric.unit, metric.share, values)
    traces = tuple(
        _trace(key, sorted(points, key=lambda point: point[0]), plot.metric, scale.divisor, index)
        for index, (key, points) in enumerate(list(lines.items())[:_MAX_LINES])
    )
    left_out = len(lines) - len(traces)
    positive = [value for value in values if value > 0]
    over = axis_title(study, plot.over)
    return Chart(
        kind="curve",
        name=name,
        title=f"{metric_title(plot.metric)}{_whose(plot)} over {_in_sentence(over)}{of_all(plot.where)}",
        x_label=f"{over} ({scaled.unit})" if scaled and scaled.unit else over,
        y_label=_axis_label(plot.metric, scale.unit),
        traces=traces,
        categories=() if scaled else tuple(labels),
        x_log=bool(scaled and scaled.log),
        y_log=bool(positive) and len(positive) == len(values) and max(values) / min(values) > _WIDE,
        notes=(f"{left_out} more lines are in the table.",) if left_out > 0 else (),
    )


def _with_laws(plot: Plot, rows: Sequence[CellSummary], study: Study, name: str) -> Chart | None:
    """A curve of goodput with the limits by the laws at each of its points, for the flows as they are."""
    chart = _curve(_of_metric(plot, "goodput"), rows, study, name)
    if chart is None:
        return None
    divisor = _divisor(rows)
    labels = list(dict.fromkeys(_label(row, plot.over) for row in rows))
    scaled = amounts(labels)
    at = dict(zip(labels, scaled.values if scaled else range(len(labels)), strict=True))
    known = [row for row in rows if row.figures["goodput"].known]
    known = [row for row in known if row.baseline] or known
    # The window that flows really had where a window limited them.
    windows = [
        row.figures["effective_window"].value
        for row in known
        if row.limited_by in ("receive window", "send buffer") and row.figures["effective_window"].known
    ]
    laws: dict[str, dict[float, float]] = {}
    for row in known:
        plan = study.plan_of(row.cell)
        flow = plot.flow or next(f["name"] for f in plan["flows"] if kind_of(f).bulk_tcp)
        path = path_of(plan, flow)
        if path is None:
            continue
        streams = next(int(f["streams"]) for f in plan["flows"] if f["name"] == flow)
        allowed = {
            "link": link_limit(path),
            "Mathis (Reno)": streams * mathis(path),
            "PFTK (Reno)": streams * pftk(path),
            "CUBIC's response": streams * cubic_response(path),
        }
        if windows:
            allowed[f"window {bytes_text(float(f'{max(windows) / streams:.3g}'))} / RTT"] = window_limit(
                path, max(windows)
            )
        for law, value in allowed.items():
            if math.isfinite(value):
                laws.setdefault(law, {})[float(at[_label(row, plot.over)])] = value / divisor
    lines = tuple(
        Trace(
            law,
            np.array(sorted(points)),
            np.array([points[x] for x in sorted(points)]),
            replace(style(len(chart.traces) + index), dash="dot"),
        )
        for index, (law, points) in enumerate(laws.items())
    )
    return replace(
        chart,
        title=f"{chart.title}, with the limits by theory",
        traces=(*chart.traces, *lines),
        y_log=True,
        notes=(
            *chart.notes,
            "Dotted: the limit by each law, of the flow as it is. The lowest one that applies is its limit.",
        ),
    )


def _divisor(rows: Sequence[CellSummary]) -> float:
    values = [row.figures["goodput"].value for row in rows if row.figures["goodput"].known]
    return metric_scale("bit/s", False, values).divisor


def _of_metric(plot: Plot, metric: str) -> Plot:
    return replace(plot, metric=metric)


def _heatmap(plot: Plot, rows: Sequence[CellSummary], study: Study, name: str) -> Heatmap | None:
    # Cells of a group that varies neither axis have no field.
    axes = (plot.over, plot.by)
    rows = [row for row in rows if row.figures[plot.metric].known and any(_has(row, axis) for axis in axes)]
    if plot.over is None or plot.by is None:
        return None
    columns = list(dict.fromkeys(_label(row, plot.over) for row in rows))
    lines = list(dict.fromkeys(_label(row, plot.by) for row in rows))
    if not columns:
        return None
    metric = METRICS[plot.metric]
    scale = metric_scale(metric.unit, metric.share, [row.figures[plot.metric].value for row in rows])
    fields: dict[tuple[int, int], list[float]] = {}
    for row in rows:
        at = lines.index(_label(row, plot.by)), columns.index(_label(row, plot.over))
        fields.setdefault(at, []).append(row.figures[plot.metric].value / scale.divisor)
    values = np.full((len(lines), len(columns)), math.nan)
    for at, found in fields.items():
        values[at] = np.mean(found)
    maximum = max(len(found) for found in fields.values())
    texts = tuple(
        tuple("" if math.isnan(value) else f"{value:.{scale.decimals}f}" for value in line) for line in values
    )
    over, by = (axis_title(study, axis) for axis in (plot.over, plot.by))
    shown = f"{_in_sentence(over)} and {_in_sentence(by)}"
    return Heatmap(
        name=name,
        title=f"{metric_title(plot.metric)}{_whose(plot)} by {shown}{of_all(plot.where)}",
        x_label=over,
        y_label=by,
        z_label=_axis_label(plot.metric, scale.unit),
        columns=tuple(columns),
        rows=tuple(lines),
        values=values,
        texts=texts,
        notes=(f"A field is the mean of up to {maximum} cells that differ in other axes.",) * (maximum > 1),
    )


def _improvement(plot: Plot, rows: Sequence[CellSummary], name: str) -> Chart | None:
    changed = [(row, row.changes[plot.metric]) for row in rows if plot.metric in row.changes]
    changed = [(row, change) for row, change in changed if math.isfinite(change.percent)][:_MAX_BARS]
    if not changed:
        return None
    axes = _varied([row for row, _ in changed])
    return Chart(
        kind="bars",
        name=name,
        title=f"{metric_title(plot.metric)}: change from the baseline",
        x_label="",
        y_label="Change (%)",
        traces=(
            Trace(
                plot.metric,
                np.arange(len(changed), dtype=float),
                np.array([change.percent for _, change in changed]),
                style(0),
                np.array([change.low for _, change in changed]),
                np.array([change.high for _, change in changed]),
                tuple(f"{row.cell.title}: {change.percent:+.1f} %{_p(change)}" for row, change in changed),
            ),
        ),
        categories=tuple(_rest(row, axes) for row, _ in changed),
        level=0.0,
    )


def _p(change: Change) -> str:
    if change.test == DETERMINISTIC:
        return f" ({DETERMINISTIC})"
    return "" if math.isnan(change.p) else f" (p {change.p:.3g})"


def _cloud(
    plot: Plot, rows: Sequence[CellSummary], results: pl.DataFrame, name: str, metric: str, *, falling: bool
) -> Chart | None:
    """Every repetition's goodput against another metric, with an ellipse around each cell's."""
    done = results.filter((pl.col("status") == "done") & pl.col("flow").is_null())
    done = done.drop_nulls(["goodput", metric])
    shown = [row for row in rows if (done["cell"] == row.cell.id).any()]
    if not shown:
        return None
    goodput_scale = metric_scale("bit/s", False, done["goodput"].to_list())
    other = METRICS[metric]
    scale = metric_scale(other.unit, other.share, done[metric].to_list())
    by = plot.by
    axes = _varied(shown)

    def key_of(row: CellSummary) -> str:
        return _named(by, _label(row, by)) if by else _rest(row, axes, *plot.where)

    keys = list(dict.fromkeys(key_of(row) for row in shown))
    if len(keys) > _MAX_LINES and by is None:
        by = _coarse(shown)
        keys = list(dict.fromkeys(key_of(row) for row in shown)) if by else keys
    if len(keys) > _MAX_LINES:
        keys = ["every cell"]
    traces, outlines = [], []
    for index, key in enumerate(keys):
        own = [row for row in shown if len(keys) == 1 or key_of(row) == key]
        points = done.filter(pl.col("cell").is_in([row.cell.id for row in own]))
        titles = {row.cell.id: row.cell.title for row in own}
        x = points[metric].to_numpy() / scale.divisor
        y = points["goodput"].to_numpy() / goodput_scale.divisor
        hover = tuple(titles[cell] for cell in points["cell"])
        traces.append(Trace(key, x, y, style(index), hover=hover))
        for row in own:
            mine = points["cell"].to_numpy() == row.cell.id
            found = spread(x[mine], y[mine])
            if found is not None:
                outlines.append(Outline(key, *found, style(index)))
    delays = np.concatenate([trace.x for trace in traces])
    notes = "Each point is a run; the ellipse is one standard deviation over the repetitions of a cell."
    return Chart(
        kind="cloud",
        name=name,
        title=f"Goodput against {'delay' if falling else 'CPU'}{of_all(plot.where)}",
        x_label=_axis_label(metric, scale.unit),
        y_label=f"Goodput ({goodput_scale.unit})",
        traces=tuple(traces),
        outlines=tuple(outlines),
        x_log=falling and bool(delays.min() > 0) and bool(delays.max() / delays.min() > _WIDE),
        x_reversed=falling,
        y_zero=False,
        notes=(notes + (" Up and to the right is better." if falling else ""),),
    )


def _coarse(rows: Sequence[CellSummary]) -> str | None:
    """The first axis that divides the cells into few series; None: no axis does."""
    axes = dict.fromkeys(axis for row in rows for axis in row.cell.labels)
    return next((axis for axis in axes if 1 < len({_label(row, axis) for row in rows}) <= _MAX_LINES), None)


def _trace(
    key: str, points: Sequence[tuple[float, CellSummary]], metric: str, divisor: float, index: int
) -> Trace:
    found = [row.figures[metric] for _, row in points]
    # Most metrics are never negative, whatever the interval of two repetitions that differ.
    minimum = -math.inf if METRICS[metric].signed else 0.0
    return Trace(
        key,
        np.array([x for x, _ in points], dtype=float),
        np.array([figure.value for figure in found]) / divisor,
        style(index),
        np.maximum([figure.interval.low for figure in found], minimum) / divisor,
        np.array([figure.interval.high for figure in found]) / divisor,
        tuple(f"{row.cell.title}: {row.figures[metric].value / divisor:.4g}" for _, row in points),
    )


def axis_title(study: Study, name: str) -> str:
    """The label of an axis: its `label` in the study's file, or its name, as for `engine` and `group`."""
    axis = study.axis(name)
    words = axis.title if axis is not None else name
    return words[:1].upper() + words[1:]


def _in_sentence(title: str) -> str:
    """A title within a sentence: acronyms keep their capitals."""
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


def _whose(plot: Plot) -> str:
    return f" of {plot.flow}" if plot.flow else ""


def _axis_label(metric: str, unit: str) -> str:
    words = metric_title(metric)
    return f"{words} ({unit})" if unit else words
