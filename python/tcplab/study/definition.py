"""What a study file says: a scenario, a grid over it, repetitions, and what is expected of the results."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from tcplab.scenario.fields import Count, Name, Short, Strict, Text, Time, refuse
from tcplab.scenario.quantity import show

Scalar = str | int | float | bool
Settings = dict[str, Any]
"""Paths in the scenario, and what each is set to."""

RESERVED = (
    *("engine", "group", "cell", "repetition", "status", "message", "overload", "wall", "flow", "kind"),
    "limited_by",
)
"""Columns of the results, which no axis may be called."""
METRIC_WORDS = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]


class Axis(Strict):
    """One parameter that varies. Short form: a list of values, where the axis' name is the path it sets."""

    set: str | list[str] | None = None
    """The path in the scenario that it sets, as `--set` takes it (`flows.bulk.cc`), or several paths that
    get the same value. Without it, each of the `values` says itself what it sets."""
    values: list[Any] | dict[str, Settings]
    """The values; or, by label, what to set: `{lossy: {network.path.loss: 1 %}}`."""
    label: Text = ""
    """What figures and tables call it; default: its name."""

    @model_validator(mode="before")
    @classmethod
    def _lengthen(cls, read: Any) -> Any:
        return {"values": read} if isinstance(read, list) else read

    @model_validator(mode="after")
    def _whole(self) -> Axis:
        if not self.values:
            raise refuse("the axis has no values")
        if isinstance(self.values, dict) and self.set is not None:
            raise refuse("values by label say themselves what they set: leave out `set`, or give a list")
        if self.set is not None and not self.set:
            raise refuse("`set` is empty")
        return self


class Expectation(Short):
    """A statement about the results that is judged. Short form: the statement."""

    short: ClassVar[str] = "that"

    that: Text
    """The statement: `goodput(cc=bbr1) > 5 * goodput(cc=cubic)`."""
    finding: Text = ""
    """The finding it stands for, in words."""


class Combine(Strict):
    """One more cell at the end: the best value of each axis, taken together."""

    axes: Annotated[list[str], Field(min_length=1)]
    """The axes whose best values are combined."""
    goal: METRIC_WORDS = "goodput"
    """What is best: the most of this metric (or the least, with `least: on`)."""
    least: bool = False
    """Take the least rather than the most."""


AXES_NEEDED = {"curve": 1, "laws": 1, "heatmap": 2}
"""How many axes a figure of this kind needs; those it does not name are chosen."""


class Plot(Strict):
    """A figure of the report."""

    kind: Literal["bars", "curve", "laws", "heatmap", "tradeoff", "improvement", "fairness", "cpu"]
    """bars: one a cell with intervals; curve: over an axis; laws: a curve of goodput with what the laws of
    TCP allow; heatmap: over two axes; tradeoff: throughput against delay; improvement: percent over the
    baseline; fairness: Jain's index over time; cpu: CPU against goodput."""
    metric: METRIC_WORDS = "goodput"
    """What is drawn."""
    over: str | None = None
    """The axis along the figure; default of a curve, laws or heatmap: the first that varies."""
    by: str | None = None
    """The axis that colours tell apart; default of a heatmap: the next that varies."""
    flow: str | None = None
    """The flow whose metric it is; default: all flows together."""
    where: dict[str, Scalar] = Field(default_factory=dict)
    """Only the cells with these values."""


class Quick(Strict):
    """What `--quick` changes."""

    repeat: Count = 2
    """Repetitions."""
    set: Settings = Field(default_factory=dict)
    """Settings of the scenario, such as `duration: 5 s`."""
    skip: dict[str, list[Any]] = Field(default_factory=dict)
    """Values of axes that are left out."""


def _version(value: Any) -> int:
    if value != 1 or isinstance(value, bool):
        raise refuse(f"{show(value)} is not a version of the study language", "1")
    return 1


class StudyFile(Strict):
    """A scenario over a grid of parameters, with repetitions, a baseline and expectations."""

    tcplab: Annotated[int, BeforeValidator(_version), WithJsonSchema({"const": 1})]
    """Version of the language: 1."""
    study: Name
    """Name of the study."""
    description: Text = ""
    """Free text, shown in the report."""
    scenario: str | dict[str, Any]
    """The scenario: a file (relative to the study's), or the scenario itself."""
    engine: str | Annotated[list[str], Field(min_length=1)] = "sim"
    """The engine, or several to compare: `[sim, kernel]`."""
    grid: dict[str, Axis] = Field(default_factory=dict)
    """The axes by name."""
    cells: Literal["full", "zip"] | Annotated[list[dict[str, Any]], Field(min_length=1)] = "full"
    """`full`: every combination; `zip`: first with first, second with second; or a list of grids, each with
    values of some axes (`{window: [64 KiB, 1 MiB], group: windows}`), the others left as the scenario has
    them."""
    repeat: Count = 3
    """Runs of each cell, each with the next seed."""
    seed: Annotated[int, Field(ge=0, lt=2**62)] = 1
    """Seed of the first repetition, and of the order."""
    order: Literal["random", "given"] = "random"
    """The order in which the runs are made. A random one keeps a machine's drift from looking like an
    effect."""
    gap: Time = 0
    """Pause between two runs on real systems; the simulator needs none."""
    baseline: dict[str, Scalar] = Field(default_factory=dict)
    """The cell the others are compared with, by values of its axes."""
    combine: Combine | None = None
    """One more cell with the best of each axis."""
    expect: list[Expectation] = Field(default_factory=list)
    """What should come out; a study with an expectation that fails ends with exit code 1."""
    plots: list[Plot] = Field(default_factory=list)
    """Figures of the report; default: those that suit the axes."""
    quick: Quick = Quick()
    """What `--quick` changes beyond the defaults."""
