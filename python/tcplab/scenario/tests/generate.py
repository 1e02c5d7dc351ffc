"""Hypothesis strategies for valid scenarios, as Python data."""

from typing import Any

from hypothesis import strategies as st

times = st.integers(1, 5000).map(lambda n: f"{n} ms")
rates = st.integers(1, 1000).map(lambda n: f"{n} Mbit/s")
shares = st.integers(0, 1000).map(lambda n: f"{n / 10} %")
correlations = st.integers(0, 999).map(lambda n: f"{n / 10} %")
limits = st.one_of(
    st.integers(1, 10_000).map(lambda n: f"{n} packets"),
    st.integers(1, 10_000).map(lambda n: f"{n} kB"),
    times,
    st.integers(1, 50).map(lambda n: f"{n / 10} BDP"),
)
switches = st.sampled_from(["on", "off", True, False])


def some(options: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """A mapping with any of the keys."""
    return st.fixed_dictionaries({}, optional=options)


losses = st.one_of(
    shares,
    st.fixed_dictionaries(
        {"rate": shares},
        optional={
            "correlation": correlations,
            "model": st.sampled_from(["random", "netem"]),
            "before_queue": switches,
        },
    ),
    st.fixed_dictionaries(
        {
            "gilbert_elliott": st.fixed_dictionaries(
                {"p": shares, "r": shares}, optional={"bad": shares, "good": shares}
            )
        }
    ),
    st.lists(st.integers(1, 10**6), min_size=1, max_size=5, unique=True).map(
        lambda numbers: {"packets": numbers}
    ),
    st.integers(1, 10**6).map(lambda n: {"every": f"{n} packets"}),
)
chances = st.one_of(shares, st.fixed_dictionaries({"rate": shares}, optional={"correlation": correlations}))
changing: dict[str, st.SearchStrategy[Any]] = {
    "rate": rates,
    "loss": losses,
    "corrupt": chances,
    "duplicate": chances,
    "reorder": st.one_of(shares, st.fixed_dictionaries({"rate": shares}, optional={"by": times})),
    "jitter": st.one_of(
        times,
        st.fixed_dictionaries(
            {"amount": times},
            optional={
                "distribution": st.sampled_from(["uniform", "normal", "pareto"]),
                "correlation_time": st.just("1000 s"),
            },
        ),
    ),
    "up": switches,
    "queue": st.one_of(limits, limits.map(lambda limit: {"kind": "droptail", "limit": limit})),
}
settings = {key: value for key, value in changing.items() if key != "rate"}


def changes(more: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """`at:` with a few times."""
    return st.dictionaries(times, some({**changing, **more}), max_size=3)


hosts = some(
    {
        "window": st.sampled_from(["64 KiB", "1 MB", "10 BDP"]),
        "mss": st.sampled_from(["536 B", "1000 B"]),
        "initial_window": st.sampled_from(["10 packets", "3 packets"]),
        "ecn": st.sampled_from(["on", "off", "passive", "accecn"]),
        "sack": switches,
        "tso": switches,
        "gso": switches,
        "gro": switches,
        "pacing": switches,
        "rto_min": times,
        "sysctls": st.just({"net.ipv4.tcp_no_metrics_save": 1}),
        "cpus": st.sampled_from([0, [0, 1]]),
    }
)
paths = st.fixed_dictionaries(
    {"rate": rates, "rtt": st.integers(10, 1000).map(lambda n: f"{n} ms")},
    optional={
        **settings,
        "at": changes({"rtt": times}),
        "reverse": some({"rate": rates, "delay": times, "queue": limits}),
        "left": hosts,
        "per_flow": switches,
    },
)


@st.composite
def general(draw: st.DrawFn) -> tuple[dict[str, Any], list[str]]:
    """Hosts around a chain of switches and routers, and the names of the hosts."""
    count = draw(st.integers(1, 4))
    kinds = [draw(st.sampled_from(["switch", "router"])) for _ in range(count)]
    names = [f"host{index}" for index in range(draw(st.integers(2, 5)))]
    nodes: list[Any] = [draw(st.sampled_from([name, {"name": name, "kind": "host"}])) for name in names]
    nodes += [{"name": f"core{index}", "kind": kind} for index, kind in enumerate(kinds)]
    link = st.fixed_dictionaries(
        {"rate": rates, "delay": times},
        optional={
            **settings,
            "mtu": st.just("1500 B"),
            "at": changes({"delay": times}),
            "forward": some({"loss": losses}),
        },
    )
    links = [{"ends": [f"core{i}", f"core{i + 1}"], **draw(link)} for i in range(count - 1)]
    for name in names:
        links.append({"ends": [name, f"core{draw(st.integers(0, count - 1))}"], **draw(link)})
    return {"nodes": nodes, "links": links}, names


patterns = st.fixed_dictionaries(
    {"on": times, "off": times}, optional={"distribution": st.sampled_from(["constant", "exponential"])}
)
controls = st.sampled_from(["reno", "cubic", "bbr", {"name": "cubic", "beta": 0.8}])
kinds: dict[str, tuple[dict[str, st.SearchStrategy[Any]], dict[str, st.SearchStrategy[Any]]]] = {
    "tcp": ({}, {"cc": controls, "bytes": st.just("5 MB"), "pattern": patterns, "window": st.just("2 MB")}),
    "udp": (
        {"rate": rates},
        {
            "payload": st.just("100 B"),
            "bytes": st.just("1 MB"),
            "pattern": patterns,
            "spacing": st.sampled_from(["constant", "exponential"]),
        },
    ),
    "request": (
        {"request": st.just("1 kB"), "response": st.just("100 kB")},
        {"cc": controls, "think": times, "count": st.integers(1, 100)},
    ),
    "http": (
        {"sizes": st.sampled_from([["10 kB"], ["1 kB", "1 kB", "1 MB"]])},
        {
            "cc": controls,
            "objects": st.integers(1, 1000),
            "popularity": st.sampled_from(["zipf", "uniform"]),
            "page": st.integers(1, 20),
            "ranges": st.integers(1, 8),
            "think": times,
            "count": st.integers(1, 100),
        },
    ),
    "echo": (
        {},
        {
            "cc": controls,
            "sizes": st.sampled_from(["1..4096", [1, "2 KiB"], 100]),
            "iterations": st.integers(1, 100),
            "warmup": st.integers(0, 10),
            "interval": times,
            "busy_poll": switches,
        },
    ),
    "ping": ({}, {"interval": times, "payload": st.just("0 B"), "count": st.integers(1, 100)}),
}
spans = some({"start": times, "streams": st.integers(1, 20)})
lengths: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.just({}), times.map(lambda time: {"duration": time})
)


@st.composite
def flow(draw: st.DrawFn, number: int, hosts: list[str] | None) -> dict[str, Any]:
    """A flow of any kind."""
    kind = draw(st.sampled_from(sorted(kinds)))
    required, optional = kinds[kind]
    made = {"name": f"flow{number}", "kind": kind, **draw(st.fixed_dictionaries(required, optional=optional))}
    made |= draw(spans) | draw(lengths)
    if kind == "echo" and "streams" in made:
        made["clients"] = made.pop("streams")
    if kind == "http" and "streams" in made:
        made["connections"] = made.pop("streams")
    if hosts is not None:
        made["from"], made["to"] = draw(st.permutations(hosts))[:2]
    return made


@st.composite
def scenarios(draw: st.DrawFn) -> dict[str, Any]:
    """A valid scenario."""
    names: list[str] | None = None
    if draw(st.booleans()):
        network: dict[str, Any] = {"path": draw(paths)}
    else:
        network, names = draw(general())
    flows = [draw(flow(number, names)) for number in range(draw(st.integers(1, 4)))]
    made = {"tcplab": 1, "name": "made", "network": network, "flows": flows}
    made |= draw(
        some(
            {
                "description": st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=20),
                "duration": st.integers(6, 100).map(lambda n: f"{n} s"),
                "sample": some({"sockets": st.one_of(st.just("off"), times), "packets": switches}),
                "capture": st.sampled_from(["none", "headers", {"what": "full", "at": "host"}]),
                "omit": st.one_of(st.just("auto"), times),
                "repeat": st.integers(1, 5),
                "seed": st.integers(0, 2**64 - 6),
            }
        )
    )
    if "duration" not in made and any("duration" in f for f in flows):
        # The longest own duration is the end of the scenario, and every start must come before it.
        made["duration"] = "1 min"
    return made
