"""Results that are damaged, changed or not ours end in a message, never in a traceback."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from .conftest import Ended

COMMANDS = (
    ("list", "."),
    ("show", "r"),
    ("show", "r", "--json"),
    ("show", "r", "--table", "flows"),
    ("compare", "r", "whole"),
    ("report", "r"),
    *(("export", "r", "--format", form, "--output", "out") for form in ("csv", "json", "iperf3", "flent")),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tcplab import run

    from .conftest import SHORT

    directory = tmp_path_factory.mktemp("damaged") / "whole"
    run(SHORT, repeat=2, output=directory, seed=1)
    return directory


@pytest.fixture
def copies(here: Path, whole: Path) -> Path:
    """Two copies of a result; the one called `r` is to be damaged."""
    for name in ("r", "whole"):
        shutil.copytree(whole, here / name)
    return here / "r"


def is_clear(ended: Ended, command: tuple[str, ...]) -> None:
    said = f"{command}: {ended.returncode}\n{ended.stderr}"
    assert "Traceback" not in ended.stderr, said
    assert "internal error" not in ended.stderr, said
    assert ended.returncode in (0, 2), said
    if ended.returncode == 2:
        assert "tcplab: " in ended.stderr, said
        assert len(ended.stderr.strip().splitlines()) <= 3, said


WRONG: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    10**30,
    1.5,
    float("nan"),
    "",
    "no such",
    "\x1b[31m\u202e",
    [],
    [None],
    {},
    {"a": 1},
)


def change(data: Any, chance: random.Random) -> None:
    """Change, remove or rename something in nested data."""
    while True:
        keys = list(data) if isinstance(data, dict) else list(range(len(data)))
        if not keys:
            return
        key = chance.choice(keys)
        below = data[key]
        if isinstance(below, (dict, list)) and below and chance.random() < 0.8:
            data = below
            continue
        how = chance.random()
        if how < 0.25:
            del data[key]
        elif how < 0.35 and isinstance(data, dict):
            data[str(key) + "x"] = data.pop(key)
        else:
            data[key] = chance.choice(WRONG)
        return


def damage(path: Path, chance: random.Random) -> None:
    """Damage a file: in its bytes, or in what they mean."""
    data = bytearray(path.read_bytes())
    how = chance.random()
    if how < 0.1:
        path.unlink()
    elif how < 0.2:
        path.write_bytes(data[: chance.randrange(len(data))])
    elif how < 0.35:
        for _ in range(chance.choice((1, 3, 20))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data)
    elif path.suffix == ".json":
        manifest = json.loads(data)
        change(manifest, chance)
        path.write_text(json.dumps(manifest))
    elif path.suffix == ".yaml":
        from tcplab.plan.yaml_text import load_mapping

        plan = load_mapping(data.decode())
        change(plan, chance)
        path.write_text(json.dumps(plan))
    else:
        damage_table(path, chance)


def damage_table(path: Path, chance: random.Random) -> None:
    frame = pl.read_parquet(path)
    column = chance.choice(frame.columns)
    kind = frame[column].dtype
    changed = {
        0: lambda: frame.drop(column),
        1: lambda: frame.rename({column: column + "x"}),
        2: lambda: frame.with_columns(pl.lit(None, dtype=kind).alias(column)),
        3: lambda: frame.clear(),
        4: lambda: frame.with_columns(pl.lit("other").alias(column)),
        5: lambda: frame.with_columns(pl.lit(chance.choice((-1, 0, 2**62))).alias(column)),
        6: lambda: frame.reverse(),
        7: lambda: pl.concat([frame, frame]),
        8: lambda: frame.with_columns(pl.lit(float("nan")).alias(column)),
    }[chance.randrange(9)]()
    changed.write_parquet(path)


@pytest.mark.parametrize("seed", range(40))
def test_any_damage_ends_in_a_message(copies: Path, tcplab: Callable[..., Ended], seed: int) -> None:
    chance = random.Random(seed)
    files = sorted(copies.glob("run-*/*.json")) + sorted(copies.glob("run-*/*.yaml"))
    files += sorted(copies.glob("run-*/*.parquet"))
    target = chance.choice(files)
    damage(target, chance)
    for command in chance.sample(COMMANDS, 4):
        is_clear(tcplab(*command), command)


def test_each_kind_of_damage_is_named_with_its_file(copies: Path, tcplab: Callable[..., Ended]) -> None:
    plan, manifest, flows = (
        copies / "run-1" / name for name in ("plan.yaml", "manifest.json", "flows.parquet")
    )
    for path, text, said in (
        (plan, "flows: [{name: 3}]", "plan.yaml: not a plan of tcplab: flows.0.name"),
        (plan, "name: cut\n", "plan.yaml: not a plan of tcplab: flows: is missing"),
        (plan, "[]", "plan.yaml: not a plan: a mapping is expected"),
        (manifest, "{", "manifest.json: not a manifest"),
        (manifest, '{"started": "yesterday"}', "manifest.json: not a manifest: started"),
        (flows, "PAR1", "flows.parquet: not a readable table"),
    ):
        before = path.read_bytes()
        path.write_text(text)
        for command in (("compare", "r", "whole"), ("export", "r", "--format", "iperf3", "--output", "out")):
            ended = tcplab(*command)
            assert ended.returncode == 2, (command, ended)
            assert said in ended.stderr, (command, ended)
        path.write_bytes(before)


def test_a_table_that_is_missing_is_warned_of(copies: Path, tcplab: Callable[..., Ended]) -> None:
    (copies / "run-1" / "intervals.parquet").unlink()
    said = (
        "tcplab: warning: r/run-1/intervals.parquet is missing: figures made of it are absent or less exact\n"
    )
    for command in (("show", "r"), ("compare", "r", "whole"), ("export", "r", "-f", "json", "-o", "out")):
        assert tcplab(*command).stderr.count(said) == 1, command
    assert tcplab("show", "whole").stderr == ""
    (copies / "run-1" / "manifest.json").unlink()
    assert said not in tcplab("show", "r").stderr, "the run was interrupted"


def test_a_damaged_result_is_listed_beside_the_others(copies: Path, tcplab: Callable[..., Ended]) -> None:
    (copies / "run-1" / "manifest.json").write_text("{")
    ended = tcplab("list", ".")
    assert ended.returncode == 0
    assert [line.split()[0] for line in ended.stdout.splitlines()[1:]] == ["whole", "r"]
    assert "damaged" in ended.stdout
    assert ended.stderr.startswith("tcplab: warning: r/run-1/manifest.json: not a manifest: ")
    assert json.loads(tcplab("list", ".", "--json").stdout)["results"][1]["message"] in ended.stderr
