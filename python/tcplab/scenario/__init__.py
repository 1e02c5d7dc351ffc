"""The scenario language: read, checked, and expanded to a plan."""

from .caution import warnings
from .errors import ScenarioError, ScenarioErrors
from .expand import Plan, expand
from .load import from_data, load
from .model import Scenario
from .plan_yaml import dump_plan_yaml, load_plan_yaml
from .schema import json_schema

__all__ = [
    "Plan",
    "Scenario",
    "ScenarioError",
    "ScenarioErrors",
    "dump_plan_yaml",
    "expand",
    "from_data",
    "json_schema",
    "load",
    "load_plan_yaml",
    "warnings",
]
