"""The language of expectations: `goodput(cc=bbr1) > 5 * goodput(cc=cubic)`.

A *figure* is a metric's name, perhaps with what to select in brackets. These are values of axes (`cc=bbr1`),
a flow (`flow=bulk`; without it, all flows together), `engine=`, `group=`, or the word `baseline`. Figures,
numbers
and quantities with units are joined by `+ - * /`; two such expressions are compared by `>`, `>=`, `<`, `<=`,
or by `equivalent(a, b, 5 %)`. Axes that a statement does not name stay free: it must then hold for each of
their values.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tcplab.scenario import QuantityError
from tcplab.scenario.quantity import parse as parse_quantity
from tcplab.scenario.quantity import units
from tcplab.study.metrics import METRICS

_UNIT_OF = {"time": "ns", "rate": "bit/s", "size": "B", "share": "%"}
# Spellings a person uses; `most` and `least` in this version only. `rtt.p95` and `rtt` are the summary's.
_SENSES = {"maximize": 1, "minimize": -1, "most": 1, "least": -1}
_ALIASES = {"rtt": "rtt_mean", "cwnd": "cwnd_mean", "fct": "completion_time", "loss": "loss_rate"}
_EXAMPLES = {"ns": "`300 ms`", "bit/s": "`5 Mbit/s`", "B": "`64 KiB`"}
COMPARISONS = (">=", "<=", ">", "<")


class ExpectationError(ValueError):
    """A statement that cannot be read."""

    def __init__(self, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.suggestion = suggestion


@dataclass(frozen=True)
class Figure:
    """A metric of some cells."""

    metric: str
    where: tuple[tuple[str, str], ...] = ()
    """Axis (or `engine`, `group`) and label."""
    flow: str | None = None
    baseline: bool = False

    def __str__(self) -> str:
        chosen = [f"{key}={label}" for key, label in self.where]
        chosen += [f"flow={self.flow}"] if self.flow else []
        chosen += ["baseline"] if self.baseline else []
        return f"{self.metric}({', '.join(chosen)})" if chosen else self.metric


@dataclass(frozen=True)
class Constant:
    """A number in base units."""

    value: float
    unit: str
    """ns, bit/s, B, % (a share), or empty for a bare number."""


@dataclass(frozen=True)
class Operation:
    """Two expressions joined."""

    operator: str
    left: Expression
    right: Expression


Expression = Figure | Constant | Operation


@dataclass(frozen=True)
class Statement:
    """Two expressions compared."""

    text: str
    finding: str
    comparison: str
    """One of `COMPARISONS`, or `equivalent`."""
    left: Expression
    right: Expression
    margin: Constant | None = None
    """Of `equivalent`: a share of the right side, or an amount."""


def figures(expression: Expression) -> Iterator[Figure]:
    """The figures in an expression, from left to right."""
    if isinstance(expression, Figure):
        yield expression
    elif isinstance(expression, Operation):
        yield from figures(expression.left)
        yield from figures(expression.right)


def evaluate(expression: Expression, values: Mapping[Figure, float]) -> float:
    """The expression's value where each figure has one; division by zero is infinite or NaN."""
    if isinstance(expression, Constant):
        return expression.value
    if isinstance(expression, Figure):
        return values[expression]
    left, right = evaluate(expression.left, values), evaluate(expression.right, values)
    match expression.operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _:
            if right == 0:
                return float("nan") if left == 0 else float("inf") if left > 0 else float("-inf")
            return left / right


def parse(text: str, finding: str = "") -> Statement:
    """Read a statement; raises `ExpectationError`."""
    reader = _Reader(text)
    if reader.peek() == "equivalent" and reader.peek(1) == "(":
        statement = _equivalent(reader, text, finding)
    else:
        left = reader.sum()
        comparison = reader.next()
        if comparison not in COMPARISONS:
            shown = f"`{comparison}`" if comparison else "the end"
            raise ExpectationError(
                f"expected a comparison, found {shown}: one of {' '.join(COMPARISONS)}, "
                "or equivalent(a, b, 5 %)"
            )
        statement = Statement(text, finding, comparison, left, reader.sum())
    if reader.peek():
        raise ExpectationError(f"`{reader.peek()}` after the end of the statement")
    if not any(True for side in (statement.left, statement.right) for _ in figures(side)):
        raise ExpectationError("the statement names no metric: nothing of the results decides it")
    units = {unit for side in (statement.left, statement.right) if (unit := unit_of(side))}
    if len(units) > 1:
        raise ExpectationError(f"compares {' with '.join(sorted(units))}: both sides must be of one unit")
    _require_unit(statement)
    return statement


def _require_unit(statement: Statement) -> None:
    """A bare number beside a time, a rate or a size would be of ns, bit/s or B, which nobody means."""
    sides = (statement.left, statement.right)
    for side, other in (sides, sides[::-1]):
        example = _EXAMPLES.get(unit_of(other))
        if example and isinstance(side, Constant) and side.value and not side.unit:
            raise ExpectationError(f"`{side.value:g}` has no unit: write it as in {example}")


def parse_goal(text: str) -> tuple[Expression, int]:
    """Read a metric to maximize (`goodput`) or to minimize (`minimize rtt.p95`); the expression, and 1 or -1.

    Raises `ExpectationError`.
    """
    reader = _Reader(text)
    sign = 1
    if reader.peek() in _SENSES:
        sign = _SENSES[reader.next()]
    goal = reader.sum()
    if reader.peek():
        raise ExpectationError(f"`{reader.peek()}` after the end of the goal")
    if not any(True for _ in figures(goal)):
        raise ExpectationError("the goal names no metric", "goodput")
    unit_of(goal)
    return goal, sign


def _equivalent(reader: _Reader, text: str, finding: str) -> Statement:
    reader.next()
    reader.next()
    left = reader.sum()
    reader.take(",")
    right = reader.sum()
    reader.take(",")
    margin = reader.sum()
    reader.take(")")
    if not isinstance(margin, Constant) or margin.value <= 0:
        raise ExpectationError("the third part of equivalent() is its margin, such as 5 % or 2 ms")
    return Statement(text, finding, "equivalent", left, right, margin)


def unit_of(expression: Expression) -> str:
    """The unit of an expression, `share` for shares; empty where it has none, or is unknown."""
    if isinstance(expression, Constant):
        return "share" if expression.unit == "%" else expression.unit
    if isinstance(expression, Figure):
        metric = METRICS[expression.metric]
        return "share" if metric.share else metric.unit
    left, right = unit_of(expression.left), unit_of(expression.right)
    if expression.operator in "+-":
        if left and right and left != right:
            raise ExpectationError(f"`{expression.operator}` joins {left} and {right}")
        return left or right
    if expression.operator == "/":
        return "" if left == right or right not in ("", "share") else left
    known = [unit for unit in (left, right) if unit not in ("", "share")]
    return known[0] if len(known) == 1 else ""


_TOKEN = re.compile(r"\s*(>=|<=|[-+*/(),<>=]|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|[A-Za-z_][\w.]*|'[^']*'|\S)")


class _Reader:
    """A statement's words, taken one by one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = [(match.group(1), match.start(1), match.end()) for match in _TOKEN.finditer(text)]
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        return self.words[self.at + ahead][0] if self.at + ahead < len(self.words) else ""

    def next(self) -> str:
        word = self.peek()
        self.at += 1
        return word

    def take(self, wanted: str) -> None:
        found = self.next()
        if found != wanted:
            shown = f"`{found}`" if found else "the end"
            raise ExpectationError(f"expected `{wanted}`, found {shown}")

    def sum(self) -> Expression:
        left = self.product()
        while self.peek() in ("+", "-"):
            left = Operation(self.next(), left, self.product())
        return left

    def product(self) -> Expression:
        left = self.factor()
        while self.peek() in ("*", "/") and self.peek():
            left = Operation(self.next(), left, self.factor())
        return left

    def factor(self) -> Expression:
        word = self.next()
        if word == "(":
            inner = self.sum()
            self.take(")")
            return inner
        if word == "-":
            return Operation("-", Constant(0.0, ""), self.factor())
        if word[:1].isdigit():
            return self._constant(word)
        if re.fullmatch(r"[A-Za-z_][\w.]*", word):
            return self._figure(word)
        raise ExpectationError(f"expected a metric or a number, found `{word}`" if word else "it ends early")

    def _constant(self, number: str) -> Constant:
        unit = self.peek()
        if unit == "bit" or unit.endswith("bit"):
            # Rates are the only units with a slash.
            if self.peek(1) == "/" and self.peek(2) == "s":
                self.at += 3
                unit = f"{unit}/s"
        elif unit == "%" or any(unit in units()[dimension] for dimension in _UNIT_OF):
            self.at += 1
        else:
            return Constant(float(number), "")
        try:
            quantity = parse_quantity(f"{number} {unit}")
        except QuantityError as problem:
            raise ExpectationError(problem.message, problem.suggestion) from None
        return Constant(quantity.value, _UNIT_OF[quantity.dimension])

    def _figure(self, word: str) -> Figure:
        name = word.replace(".", "_")
        name = _ALIASES.get(name, name)
        if name not in METRICS:
            near = difflib.get_close_matches(name, [*METRICS, *_ALIASES], n=1, cutoff=0.5)
            raise ExpectationError(f"unknown metric `{word}`", next(iter(near), ""))
        where: dict[str, str] = {}
        flow = None
        baseline = False
        if self.peek() == "(":
            self.next()
            while self.peek() != ")":
                key, label = self._selection()
                if label is None:
                    if key not in ("baseline", "flows"):
                        raise ExpectationError(
                            f"`{key}` selects nothing: write axis=value, flow=name, or baseline"
                        )
                    baseline = baseline or key == "baseline"
                elif key == "flow":
                    flow = label
                else:
                    where[key] = label
                if self.peek() == ",":
                    self.next()
                elif self.peek() != ")":
                    raise ExpectationError(f"the bracket behind `{word}` is not closed", f"{word}(cc=cubic)")
            self.take(")")
        return Figure(name, tuple(where.items()), flow, baseline)

    def _selection(self) -> tuple[str, str | None]:
        """`key=label` or a bare word; a label goes to the next comma or bracket, or is quoted."""
        key = self.next()
        if self.peek() != "=":
            return key, None
        self.next()
        if self.peek().startswith("'"):
            return key, self.next().strip("'")
        first = self.at
        while self.peek() and self.peek() not in (",", ")"):
            self.at += 1
        if self.at == first:
            raise ExpectationError(f"`{key}=` has no value")
        return key, self.text[self.words[first][1] : self.words[self.at - 1][2]].strip()
