"""Expectations and failed runs as JUnit XML, so that a CI can gate on TCP's behaviour."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from tcplab.analysis.statistics import DETERMINISTIC
from tcplab.results.files import write_bytes
from tcplab.study.expect import unit_of
from tcplab.study.judge import Judgement, Verdict
from tcplab.study.scale import metric_scale
from tcplab.study.store import Done


def write_junit(path: Path, name: str, judgements: Sequence[Judgement], done: Sequence[Done]) -> None:
    """One test case a statement, and one a run that failed; raises ResultsError.

    An undecided statement is `skipped`, with what would decide it: it does not prove a fault.
    """
    failed = [one for one in done if one.status == "failed"]
    verdicts = [judgement.verdict for judgement in judgements]
    suite = ET.Element(
        "testsuite",
        name=name,
        tests=str(len(judgements) + len(failed)),
        failures=str(verdicts.count(Verdict.FAILS)),
        errors=str(len(failed)),
        skipped=str(verdicts.count(Verdict.UNDECIDED)),
    )
    for judgement in judgements:
        case = ET.SubElement(suite, "testcase", classname=f"{name}.expect", name=judgement.statement.text)
        words = "\n".join(case_words(judgement))
        if judgement.verdict is Verdict.FAILS:
            ET.SubElement(case, "failure", message="does not hold").text = words
        elif judgement.verdict is Verdict.UNDECIDED:
            ET.SubElement(case, "skipped", message=f"undecided: {words}")
    for one in failed:
        case = ET.SubElement(
            suite, "testcase", classname=f"{name}.runs", name=f"{one.cell}/run-{one.repetition}"
        )
        ET.SubElement(case, "error", message=one.message)
    write_bytes(path, ET.tostring(suite, encoding="utf-8", xml_declaration=True))


def case_words(judgement: Judgement) -> list[str]:
    """Each case that does not hold, in a line."""
    lines = []
    unit = unit_of(judgement.statement.left) or unit_of(judgement.statement.right)
    for case in judgement.cases:
        scale = metric_scale(unit, unit == "share", [case.left, case.right])
        if case.verdict is Verdict.HOLDS:
            continue
        at = ", ".join(f"{axis} {label}" for axis, label in case.free.items()) or "overall"
        if case.reason:
            why = case.reason
        else:
            values = (case.left, case.right, case.low, case.high)
            left, right, low, high = (scale.number(value) for value in values)
            spread = DETERMINISTIC if math.isnan(case.low) else f"difference {low} to {high}"
            why = f"{left} against {right} {scale.unit}".rstrip() + f" ({spread})"
        more = f"; about {case.repetitions} repetitions would decide it" if case.repetitions else ""
        lines.append(f"{at}: {case.verdict}: {why}{more}")
    return lines
