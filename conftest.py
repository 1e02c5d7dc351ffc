"""Settings of all tests."""

from hypothesis import HealthCheck, settings

# How long an example takes is the machine's affair, and no verdict.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
