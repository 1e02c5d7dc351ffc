"""Tests of the scenario language."""
