"""How the agent's program is started."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import tcplab

_LOG = logging.getLogger(__name__)

_START_AGENT = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from tcplab import _core;"
    " sys.exit(_core.agent_main(sys.argv[1:]))"
)


def agent_command(*arguments: str) -> list[str]:
    """How an agent is started.

    The agent is part of the extension module, so that wherever tcplab is installed, so is the agent of
    the same version. TCPLAB_AGENT names another program instead.
    """
    program = os.environ.get("TCPLAB_AGENT")
    _LOG.debug("agent %s", " ".join(arguments))
    if program:
        return [program, *arguments]
    return [sys.executable, "-I", "-S", "-c", _START_AGENT, _root(), *arguments]


def agent_missing() -> str | None:
    """Why there is no agent to start; none if there is one."""
    program = os.environ.get("TCPLAB_AGENT")
    if program:
        return (
            None if os.access(program, os.X_OK) else f"TCPLAB_AGENT names {program}, which is not a program"
        )
    try:
        from tcplab import _core
    except ImportError as problem:
        return f"the extension module is missing: {problem}"
    return None if hasattr(_core, "agent_main") else "the extension module was built without the agent"


def _root() -> str:
    return str(Path(tcplab.__file__).parents[1])
