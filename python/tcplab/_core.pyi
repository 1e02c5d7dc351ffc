"""What is compiled: the simulator for `tcplab.engine.sim`, the agent for `tcplab.testbed`."""

from os import PathLike

class Progress:
    """How far a simulation has come."""

    @property
    def time(self) -> int:
        """Simulated time, ns."""

    @property
    def duration(self) -> int:
        """Simulated time at which the run ends at the latest, ns."""

    @property
    def done(self) -> bool:
        """Whether it has ended."""

    @property
    def goodput(self) -> dict[str, float]:
        """Goodput of each flow since the last call, bit/s."""

class Simulation:
    """A simulation of one plan.

    Raises ValueError if the plan cannot be read or simulated, OSError if a capture cannot be written.
    """

    def __init__(self, plan_json: str, capture_dir: str | PathLike[str] | None = None) -> None: ...
    def advance(self, wall_ms: int) -> Progress:
        """Simulate for `wall_ms` milliseconds of real time, or until the run ends."""

    def finish(self) -> dict[str, bytes]:
        """Give the tables by name, as Arrow IPC files, and close the captures; works before the end too."""

    def facts(self) -> dict[str, int]:
        """Tell what has been done so far: events, packets, and simulated time in ns."""

def agent_main(arguments: list[str]) -> int:
    """Be the agent that the arguments say until its input ends; returns its exit code."""

def version() -> str:
    """Tell the simulator's version."""

def controls() -> list[str]:
    """Name the congestion controls the simulator has."""
