"""The scenario language, which `crates/scenario` reads, checks and expands to plans; here it becomes Python.

Importing it takes no time worth mentioning: the compiled module is loaded with the first scenario.
"""

from .errors import QuantityError, ScenarioError, ScenarioErrors
from .reading import Scenario, expand, from_data, from_document, load, read, read_text
from .repetitions import repetition, with_phases
from .schema import json_schema, study_schema
from .warning import warnings

__all__ = [
    "QuantityError",
    "Scenario",
    "ScenarioError",
    "ScenarioErrors",
    "expand",
    "from_data",
    "from_document",
    "json_schema",
    "load",
    "read",
    "read_text",
    "repetition",
    "study_schema",
    "warnings",
    "with_phases",
]
