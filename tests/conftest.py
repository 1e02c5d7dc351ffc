"""Fixtures of tests that judge times or rates of the running kernel."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tcplab.results import Run

# How a run that is not overloaded says that its times and rates are the machine's: see `Run.warnings`.
DISTURBED = ("for want of a reader", "not sent in time")
# How often a run that was disturbed is made before a test gives up.
ATTEMPTS = 3


def _disturbance(done: Run) -> str | None:
    """The disturbances that a run reports of its machine; none if its figures are the network's and TCP's."""
    said = [one for one in done.warnings if any(word in one for word in DISTURBED)]
    return done.manifest.overload or next(iter(said), None)


@pytest.fixture(scope="session")
def disturbance() -> Callable[[Run], str | None]:
    """The disturbances that a run reports of its machine."""
    return _disturbance


@pytest.fixture(scope="session")
def undisturbed() -> Callable[[Callable[[], Run]], Run]:
    """Make a run, again where it says that it was disturbed; in the end skip with what it said."""

    def make_it(make: Callable[[], Run]) -> Run:
        said = None
        for _ in range(ATTEMPTS):
            done = make()
            said = _disturbance(done)
            if said is None:
                return done
        pytest.skip(f"{ATTEMPTS} times: {said}")

    return make_it
