"""The scenario language: read, checked, and expanded to a plan."""

from .caution import warnings
from .errors import ScenarioError, ScenarioErrors
from .expand import Plan, expand
from .load import from_data, load
from .model import Scenario
from .schema import json_schema

__all__ = [
    "Plan",
    "Scenario",
    "ScenarioError",
    "ScenarioErrors",
    "expand",
    "from_data",
    "json_schema",
    "load",
    "warnings",
]
