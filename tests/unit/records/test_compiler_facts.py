import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.compiler_facts import CompilerFacts, facts_to_json
from kernelcast.records.errors import InputError
from kernelcast.records.traits import Trait, TraitSource

NAMES = [field.name for field in fields(CompilerFacts)]
TRAITS: st.SearchStrategy[Trait[int]] = st.builds(
    Trait, value=st.integers(1, 2**40), source=st.sampled_from(TraitSource)
)


@given(known=st.dictionaries(st.sampled_from(NAMES), TRAITS))
def test_json_holds_what_is_known(known: dict[str, Trait[int]]) -> None:
    """Holds value and source of each fact that is known, and no other."""
    content = json.loads(json.dumps(facts_to_json(CompilerFacts(**known))))
    found = {
        name: Trait(value=one["value"], source=TraitSource(one["source"]))
        for name, one in content.items()
    }
    assert found == known


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_possible(name: str) -> None:
    """Refuses negative numbers, and zero where something is always there."""
    is_size = name in {
        "preferred_work_group_multiple", "max_work_group_size", "sub_group_size",
        "sub_groups_per_work_group",
    }  # fmt: skip
    for value in [-1, 0] if is_size else [-1]:
        with pytest.raises(InputError, match=f"{name} is {value}; give a number of at least"):
            CompilerFacts(**{name: Trait(value=value, source=TraitSource.REPORTED)})
