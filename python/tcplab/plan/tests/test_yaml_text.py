from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcplab.plan.yaml_text import dump_plan_yaml, load_mapping

SCALARS = st.none() | st.booleans() | st.integers(0, 2**62) | st.text(max_size=8)
NAMES = st.text("abcdefghij_", min_size=1, max_size=6)
PLANS = st.dictionaries(
    NAMES, SCALARS | st.lists(st.integers(0, 2**40), max_size=200), min_size=1, max_size=6
)


@given(PLANS)
def test_a_plan_is_read_as_it_was_written(plan: Any) -> None:
    assert load_mapping(dump_plan_yaml(plan)) == plan


def test_a_delivery_trace_survives_between_other_settings() -> None:
    directions = [{"trace": {"opportunities_ms": list(range(n))}, "delay": n} for n in (1000, 3, 2000)]
    plan = {"links": directions, "flows": [{"name": "a", "packets": [1, 2]}]}
    text = dump_plan_yaml(plan)
    assert max(map(len, text.splitlines())) <= 110
    assert load_mapping(text) == plan


@pytest.mark.parametrize("text", ["", "- 1\n", "word"])
def test_what_is_not_a_mapping_is_not_a_plan(text: str) -> None:
    with pytest.raises(ValueError, match=r"mapping|empty"):
        load_mapping(text)


def test_a_list_may_mix_mappings_and_short_forms() -> None:
    data = {"nodes": ["client", {"name": "r", "kind": "router"}, {}, "server"]}
    assert load_mapping(dump_plan_yaml(data)) == data
