"""Settings of all tests."""

import gc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tcplab.process import settle

# How long an example takes is the machine's affair, and no verdict.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

settle()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Spread tests of remote hosts among others. They mostly wait: in a row they would leave a CPU idle."""
    if not hasattr(config, "workerinput"):
        return
    tests = Path(__file__).parent / "tests"
    others, waiting, first = [], [], []
    for item in items:
        folders = item.path.parents
        (waiting if tests / "remote" in folders else others if tests in folders else first).append(item)
    places = [
        ((place + 0.5) / len(group), item) for group in (others, waiting) for place, item in enumerate(group)
    ]
    items[:] = [*first, *(item for _, item in sorted(places, key=lambda one: one[0]))]


def pytest_collection_finish() -> None:
    """Tests stay to the end: the garbage collector need not look through them."""
    gc.freeze()
