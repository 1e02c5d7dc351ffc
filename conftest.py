"""Settings of all tests."""

import gc

from hypothesis import HealthCheck, settings

from tcplab.process import settle

# How long an example takes is the machine's affair, and no verdict.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

settle()


def pytest_collection_finish() -> None:
    """Tests stay to the end: the garbage collector need not look through them."""
    gc.freeze()
