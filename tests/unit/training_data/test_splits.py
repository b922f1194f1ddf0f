from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kernelcast.records.errors import InputError
from kernelcast.testing.observations import make_observation
from kernelcast.training_data.splits import (
    Fold,
    SplitBy,
    hold_out,
    label_rows,
    leave_one_group_out,
    split_into_folds,
)
from kernelcast.training_data.store import open_store

LABELS = st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=60).filter(
    lambda found: len(set(found)) > 1
)
SEEDS = st.integers(0, 5)


def held_out(fold: Fold, labels: list[str]) -> set[str]:
    """Give the groups whose rows are in the test part."""
    return {labels[place] for place in fold.test}


def check_fold(fold: Fold, labels: list[str]) -> None:
    """Hold for every fold: each row on one side, each group whole."""
    assert sorted([*fold.train, *fold.test]) == list(range(len(labels)))
    assert held_out(fold, labels) == set(fold.groups)
    assert not {labels[place] for place in fold.train} & set(fold.groups)
    assert fold.train.size
    assert fold.test.size


@given(labels=LABELS)
def test_each_group_is_left_out_once(labels: list[str]) -> None:
    """Has one fold per group, with all its rows."""
    folds = leave_one_group_out(labels)
    assert [fold.groups for fold in folds] == [(group,) for group in sorted(set(labels))]
    for fold in folds:
        check_fold(fold, labels)


@given(labels=LABELS, seed=SEEDS, data=st.data())
def test_folds_are_whole_and_complete(labels: list[str], seed: int, data: st.DataObject) -> None:
    """Tests every row once, and never splits a group."""
    count = data.draw(st.integers(2, len(set(labels))))
    folds = split_into_folds(labels, count, seed=seed)
    assert len(folds) == count
    for fold in folds:
        check_fold(fold, labels)
    assert sorted(place for fold in folds for place in fold.test) == list(range(len(labels)))


@given(labels=LABELS, seed=SEEDS, share=st.floats(0.05, 0.95))
def test_a_part_held_out_is_whole(labels: list[str], seed: int, share: float) -> None:
    """Holds out whole groups, leaves some, and misses the share by less than its largest group."""
    fold = hold_out(labels, share, seed=seed)
    check_fold(fold, labels)
    largest = max(labels.count(group) for group in labels)
    assert abs(fold.test.size - share * len(labels)) <= largest


MAKERS: list[Callable[[list[str]], list[Fold]]] = [
    leave_one_group_out,
    lambda labels: split_into_folds(labels, 2, seed=3),
    lambda labels: [hold_out(labels, 0.4, seed=3)],
]


@pytest.mark.parametrize("make", MAKERS)
@given(labels=LABELS, seed=SEEDS)
def test_order_of_rows_does_not_matter(
    make: Callable[[list[str]], list[Fold]], labels: list[str], seed: int
) -> None:
    """Holds the same groups out whatever the order of the rows, and again each time."""
    order = np.random.default_rng(seed).permutation(len(labels))
    shuffled = [labels[place] for place in order]
    groups = [fold.groups for fold in make(labels)]
    assert [fold.groups for fold in make(shuffled)] == groups
    assert [fold.groups for fold in make(labels)] == groups


@given(labels=LABELS)
def test_seeds_differ(labels: list[str]) -> None:
    """Draws other folds by other seeds, as soon as there are enough groups."""
    assume(len(set(labels)) >= 4)
    drawn = {str([f.groups for f in split_into_folds(labels, 2, seed=s)]) for s in range(30)}
    assert len(drawn) > 1


def test_folds_are_of_about_one_size() -> None:
    """Puts large groups beside small ones."""
    labels = [f"g{group}" for group in range(40) for _ in range(1 + group % 5)]
    sizes = [fold.test.size for fold in split_into_folds(labels, 5)]
    assert max(sizes) - min(sizes) <= 5


@pytest.mark.parametrize("count", [1, 3])
def test_a_wrong_number_of_folds(count: int) -> None:
    """Refuses more folds than groups, and fewer than two."""
    with pytest.raises(InputError, match="at least 2 and at most 2"):
        split_into_folds(["a", "b"], count)


def test_one_group_cannot_be_split() -> None:
    """Needs another group to learn from."""
    with pytest.raises(InputError, match="at least two"):
        leave_one_group_out(["a", "a"])
    with pytest.raises(InputError, match="share"):
        hold_out(["a", "b"], 1.0)


def test_rows_are_labelled(tmp_path: object) -> None:
    """Groups rows by kernel, application and device."""
    with open_store(f"{tmp_path}/rows.sqlite") as store:
        from kernelcast.training_data.store import load_table

        store.add_many(map(make_observation, range(42)))
        table = load_table(store)
    assert set(label_rows(table, SplitBy.KERNEL)) == {
        f"suite/application{number // 2}/kernel{number}" for number in range(7)
    }
    assert len(set(label_rows(table, SplitBy.APPLICATION))) == 4
    assert set(label_rows(table, SplitBy.DEVICE)) == {"device-0", "device-1", "device-2"}
    assert [fold.groups for fold in leave_one_group_out(label_rows(table, SplitBy.DEVICE))] == [
        ("device-0",), ("device-1",), ("device-2",),
    ]  # fmt: skip
