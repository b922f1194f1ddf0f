import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.compiler_facts import CompilerFacts, facts_from_json, facts_to_json
from kernelcast.records.errors import InputError
from kernelcast.records.traits import Trait, TraitSource

NAMES = [field.name for field in fields(CompilerFacts)]
TRAITS: st.SearchStrategy[Trait[int]] = st.builds(
    Trait, value=st.integers(1, 2**40), source=st.sampled_from(TraitSource)
)


@given(known=st.dictionaries(st.sampled_from(NAMES), TRAITS))
def test_facts_survive_json(known: dict[str, Trait[int]]) -> None:
    """Comes back from JSON as it was, what is not known left out."""
    facts = CompilerFacts(**known)
    content = json.loads(json.dumps(facts_to_json(facts)))
    assert set(content) == set(known)
    assert facts_from_json(content) == facts


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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"warp_size": {"value": 32, "source": "reported"}}, "warp_size unknown; the facts are"),
        ({"sub_group_size": {"value": "32", "source": "reported"}}, "is '32'; give a whole number"),
        ({"sub_group_size": {"value": True, "source": "reported"}}, "is True; give a whole"),
        ({"sub_group_size": {"value": 32, "source": "guessed"}}, "source 'guessed'; give one of"),
        ({"sub_group_size": {}}, "is None; give a whole number"),
    ],
)
def test_wrong_json_is_explained(content: dict[str, dict[str, object]], message: str) -> None:
    """Says what is wrong with a file that holds no facts."""
    with pytest.raises(InputError, match=message):
        facts_from_json(content)


def test_null_is_not_known() -> None:
    """Reads null as not known."""
    assert facts_from_json({"sub_group_size": None}) == CompilerFacts()
