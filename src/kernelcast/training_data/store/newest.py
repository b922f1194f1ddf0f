"""The newest rows of a store, for people to look at: a store may hold millions."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from kernelcast.training_data.store.selection import EVERYTHING, Selection, list_conditions
from kernelcast.training_data.store.store import Store
from kernelcast.training_data.store.tables import OBSERVATIONS


def read_newest(
    store: Store, columns: Sequence[str], *, wanted: Selection = EVERYTHING, most: int
) -> list[dict[str, Any]]:
    """Give the newest observations, oldest of them first.

    Parameters
    ----------
    columns : sequence of str
        Of the observations' table.
    most : int
        How many at most. Those whose time is not known count as the oldest.
    """
    found = OBSERVATIONS.c
    query = (
        sa.select(*(found[name] for name in columns))
        .where(*list_conditions(wanted, OBSERVATIONS))
        .order_by(found.measured_at_us.desc().nulls_last(), found.key)
        .limit(most)
    )
    return [dict(zip(columns, row, strict=True)) for row in reversed(store.select(query))]
