from dataclasses import fields

import pytest

from kernelcast.records.compiler_facts import CompilerFacts
from kernelcast.records.errors import InputError
from kernelcast.records.traits import Trait, TraitSource

NAMES = [field.name for field in fields(CompilerFacts)]


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
