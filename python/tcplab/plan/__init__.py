"""A plan, read: its types, paths, directions, its settings in words, its form as YAML."""

from .types import Plan

__all__ = ["Plan"]
