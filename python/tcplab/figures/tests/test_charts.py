"""Charts that are not over time, as both back ends draw them."""

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from tcplab.figures import draw_matplotlib as printed
from tcplab.figures import draw_plotly as interactive
from tcplab.figures.ellipse import spread
from tcplab.figures.model import Chart, Figure, Heatmap, Line, Panel, Trace
from tcplab.figures.palette import style


def test_the_ellipse_is_one_standard_deviation_along_the_principal_axes() -> None:
    # Along the diagonal with deviation 2, across it with 1.
    along, across = np.array([-2.0, 2, 0, 0]) * np.sqrt(1.5), np.array([0, 0, -1.0, 1]) * np.sqrt(1.5)
    x, y = 10 + (along - across) / np.sqrt(2), 20 + (along + across) / np.sqrt(2)
    found = spread(x, y)
    assert found is not None
    dx, dy = found[0] - 10, found[1] - 20
    radius = ((dx + dy) / np.sqrt(2) / 2) ** 2 + ((dy - dx) / np.sqrt(2) / 1) ** 2
    assert radius == pytest.approx(np.ones(len(radius)))


def test_a_single_value_has_no_spread() -> None:
    assert spread(np.array([1.0]), np.array([2.0])) is None
    assert spread(np.array([1.0, 1.0]), np.array([2.0, 2.0])) is None


def bars(**how: object) -> Chart:
    x, low, high = np.array([0.0, 1.0]), np.array([2.0, 4.5]), np.array([4.0, np.nan])
    one = Trace("a", x, np.array([3.0, 5.0]), style(0), low, high)
    two = Trace("b", x, np.array([1.0, 2.0]), style(1))
    settings = {"categories": ("reno", "cubic"), **how}
    return Chart("bars", "n", "t", "control", "goodput (Mbit/s)", (one, two), **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [2, 10])
@pytest.mark.parametrize(
    "key", ["cubic", "cc cubic, rtt 100 ms, loss 0.01 %, direction up, streams", "word " * 60]
)
def test_a_legend_leaves_the_axes_their_width_and_height(key: str, count: int) -> None:
    x = np.arange(5.0)
    traces = tuple(Trace(f"{at} {key}", x, x + at, style(at)) for at in range(count))
    canvas = printed.draw(Chart("curve", "n", "t", "time (s)", "Jain's index", traces))
    canvas.draw_without_rendering()
    axis = canvas.axes[0].get_position()
    assert axis.width > 0.85
    assert axis.height * canvas.get_figheight() > 2.5
    (legend,) = canvas.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= canvas.bbox.width
    assert box.y0 >= axis.y1 * canvas.bbox.height


@pytest.mark.parametrize("columns", [1, 2])
def test_a_legend_of_long_names_stays_on_the_figure_of_panels(columns: int) -> None:
    x = np.arange(5.0)
    lines = tuple(Line(f"{at}: 10.0.0.1:4000{at} -> 10.0.0.2:5001", x, x, style(at)) for at in range(5))
    panels = (Panel("Goodput", "Mbit/s", lines, x_title="Time"),) * columns
    canvas = printed.draw(Figure("n", "t", "Time (s)", panels, columns=columns))
    canvas.draw_without_rendering()
    (legend,) = canvas.legends
    box = legend.get_window_extent()
    assert box.x1 <= canvas.bbox.width
    assert box.y0 >= canvas.axes[0].get_position().y1 * canvas.bbox.height


def test_a_value_without_an_interval_has_no_error_bar() -> None:
    x, unknown = np.arange(3.0), np.array([0.5, np.nan, np.nan])
    some = Trace("a", x, x + 1, style(0), x + 1 - unknown, x + 1 + unknown)
    none = Trace("b", x, x, style(1), np.full(3, np.nan), np.full(3, np.nan))
    chart = Chart("curve", "n", "t", "x", "y", (some, none))
    first, second = interactive.draw(chart).data
    assert list(first.error_y.array) == [0.5, "none", "none"]
    assert second.error_y.array is None
    containers = printed.draw(chart).axes[0].containers
    bars = [segment for _, _, lines in containers for line in lines for segment in line.get_segments()]
    assert [segment.tolist() for segment in bars if len(segment)] == [[[0.0, 0.5], [0.0, 1.5]]]


def test_both_back_ends_draw_the_same_bars() -> None:
    drawn = interactive.draw(bars())
    axis = printed.draw(bars()).axes[0]
    heights = [bar.get_height() for bar in axis.patches if isinstance(bar, Rectangle)]
    assert heights == [height for trace in drawn.data for height in trace.y] == [3, 5, 1, 2]
    assert [label.get_text() for label in axis.get_xticklabels()] == list(drawn.layout.xaxis.ticktext)
    assert axis.get_ylabel() == drawn.layout.yaxis.title.text == "goodput (Mbit/s)"
    # An interval that is not known has no line.
    assert list(drawn.data[0].error_y.array) == [1, 0]
    assert list(drawn.data[0].error_y.arrayminus) == [1, 0.5]


def test_scales_are_as_asked_in_both() -> None:
    chart = bars(y_log=True, x_reversed=True, level=4.0)
    drawn, axis = interactive.draw(chart), printed.draw(chart).axes[0]
    assert drawn.layout.yaxis.type == axis.get_yscale() == "log"
    assert drawn.layout.xaxis.autorange == "reversed"
    assert axis.xaxis_inverted()
    assert [shape.y0 for shape in drawn.layout.shapes] == [4.0]


@pytest.mark.parametrize(("top", "ticks"), [(2.0, None), (20.0, "D2"), (300.0, "D2"), (5000.0, None)])
def test_labels_of_a_logarithmic_axis_of_one_to_three_decades_do_not_overlap(
    top: float, ticks: str | None
) -> None:
    trace = Trace("a", np.array([1.0, top]), np.array([1.0, top]), style(0))
    chart = Chart("curve", "n", "t", "x", "y", (trace,), x_log=True, y_log=True)
    layout = interactive.draw(chart).layout
    assert layout.xaxis.dtick == layout.yaxis.dtick == ticks


def test_a_heatmap_has_a_text_in_each_cell() -> None:
    chart = Heatmap(
        "n",
        "t",
        "rtt",
        "streams",
        "Mbit/s",
        ("1 ms", "9 ms"),
        ("1",),
        np.array([[1.0, 9.0]]),
        (("1.0", "9.0"),),
    )
    drawn, axis = interactive.draw(chart), printed.draw(chart).axes[0]
    assert [text.get_text() for text in axis.texts] == list(drawn.data[0].text[0]) == ["1.0", "9.0"]
    assert list(drawn.data[0].z[0]) == [1.0, 9.0]
