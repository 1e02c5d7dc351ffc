"""Settings of the command's process, and what programs that it starts for the user get of them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_CODE = """
import os
from tcplab.process import given_environment, settle
settle()
print(os.environ["OPENBLAS_NUM_THREADS"], given_environment().get("OPENBLAS_NUM_THREADS"))
"""


@pytest.mark.parametrize(("given", "said"), [({}, "1 None"), ({"OPENBLAS_NUM_THREADS": "4"}, "4 4")])
def test_programs_of_the_user_get_the_environment_that_the_user_gave(
    given: dict[str, str], said: str
) -> None:
    """Their matrices may be worth threads."""
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", _CODE], env=environment | given, check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == said.split()
