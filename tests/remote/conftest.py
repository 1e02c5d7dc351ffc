"""Hosts with sshd that `us` logs into: one set for each file of tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .hosts import Host, Hosts, obstacle, wait_for


@pytest.fixture(scope="module")
def hosts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    """`left`, `right` and `third`. A file's `RIGHT_AHEAD` is how many seconds `right`'s clock is ahead."""
    if (reason := obstacle()) is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("hosts")
    ahead = getattr(request.module, "RIGHT_AHEAD", 0)
    made = Hosts(
        folder,
        left=Host("left", "10.77.0.2", folder / "left"),
        right=Host("right", "10.77.0.3", folder / "right", ahead=ahead),
        third=Host("third", "10.77.0.4", folder / "third"),
    )
    try:
        made.up()
        yield made
    finally:
        made.down()


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """However a test ends, its hosts have no process and no file of ours some seconds later."""
    made = request.getfixturevalue("hosts") if "hosts" in request.fixturenames else None
    yield
    if isinstance(made, Hosts):
        for name, host in made.all.items():
            if name != "us":
                wait_for(lambda host=host: host.left() == [])
