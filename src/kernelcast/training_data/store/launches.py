"""Launches that a store holds, each summed up by the database from its newest observations.

A launch may have been observed a hundred thousand times, and thousands of launches are shown at
once: of each, a fixed number of observations are read, by an index that holds all that is needed.
"""

from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from kernelcast.training_data.store.schema import (
    LAUNCHES,
    OBSERVATIONS,
    Selection,
    list_conditions,
    load_ndrange,
)
from kernelcast.training_data.store.store import Store

SUMMED: Final = 20
"""Newest observations of a launch that its median and its noise are of; others of the last one's
moment count too."""
# Before all times: a launch of fewer observations is read whole.
_EVER: Final = -(2**62)


def list_newest(
    store: Store, wanted: Selection, *, most: int, kernel: str | None = None
) -> list[sa.Row[Any]]:
    """Return launches with such observations, with their labels, that were measured last first."""
    newest = _query_time(wanted, most=1).label("newest_us")
    order = (newest.desc().nulls_last(), LAUNCHES.c.changed.desc(), LAUNCHES.c.launch_key)
    query = sa.select(LAUNCHES, newest).order_by(*order).limit(most)
    if kernel is not None:
        query = query.where(LAUNCHES.c.kernel == kernel)
    return [one for one in store.select(query) if one.newest_us is not None]


def sum_up_launches(store: Store, keys: Sequence[str], wanted: Selection) -> list[sa.Row[Any]]:
    """Sum up the newest observations of launches; those without any are left out."""
    newest = _query_newest(keys, wanted, SUMMED).subquery()
    place = sa.func.row_number().over(partition_by=newest.c.launch_key, order_by=newest.c.seconds)
    count = sa.func.count().over(partition_by=newest.c.launch_key)
    placed = sa.select(newest, place.label("place"), count.label("count")).subquery()
    tenth = (placed.c.count - 1) // 10
    middle = placed.c.place.between((placed.c.count + 1) // 2, (placed.c.count + 2) // 2)
    found = placed.c
    query = sa.select(
        found.launch_key,
        sa.func.count().label("observations"),
        sa.func.avg(sa.case((middle, found.seconds))).label("seconds"),
        sa.func.max(sa.case((found.place == 1 + tenth, found.seconds))).label("low_s"),
        sa.func.max(sa.case((found.place == found.count - tenth, found.seconds))).label("high_s"),
        sa.func.avg(sa.case((found.run_count > 1, found.noise))).label("noise"),
        sa.func.max(found.measured_at_us).label("measured_at_us"),
    ).group_by(found.launch_key)
    return store.select(query)


def read_newest_times(
    store: Store, keys: Sequence[str], wanted: Selection, *, most: int
) -> list[sa.Row[Any]]:
    newest = _query_newest(keys, wanted, most).subquery()
    order = (newest.c.launch_key, newest.c.measured_at_us.asc().nulls_first(), newest.c.seconds)
    return store.select(sa.select(newest).order_by(*order))


def find_newest_samples(store: Store, keys: Sequence[str], wanted: Selection) -> list[sa.Row[Any]]:
    """Return `launch_key`, `key` and `linear_s` of the newest observation with samples of each."""
    own = OBSERVATIONS.alias("sampled")
    newest = (
        sa.select(own.c.key)
        .where(
            own.c.launch_key == LAUNCHES.c.launch_key,
            own.c.linear_s.is_not(None),
            *list_conditions(wanted, own),
        )
        .order_by(own.c.measured_at_us.desc().nulls_last())
        .limit(1)
        .scalar_subquery()
    )
    chosen = sa.select(newest.label("key")).where(LAUNCHES.c.launch_key.in_(keys)).subquery()
    held = OBSERVATIONS.c
    return store.select(
        sa.select(held.launch_key, held.key, held.linear_s).where(
            held.key.in_(sa.select(chosen.c.key).where(chosen.c.key.is_not(None)))
        )
    )


def find_sizes(store: Store, keys: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the global size of each launch whose newest observation knows it."""
    own = OBSERVATIONS.alias("own")
    newest = (
        sa.select(own.c.key)
        .where(own.c.launch_key == LAUNCHES.c.launch_key)
        .order_by(own.c.measured_at_us.desc().nulls_last())
        .limit(1)
        .scalar_subquery()
    )
    chosen = sa.select(newest).where(LAUNCHES.c.launch_key.in_(keys))
    held = OBSERVATIONS.c
    query = sa.select(held.launch_key, held.ndrange).where(held.key.in_(chosen))
    found = {row.launch_key: load_ndrange(row.ndrange) for row in store.select(query)}
    return {key: one.global_size for key, one in found.items() if one is not None}


def _query_newest(keys: Sequence[str], wanted: Selection, most: int) -> sa.CompoundSelect[Any]:
    """Make the query for the newest rows of each launch; all of the last row's moment are there."""
    held = OBSERVATIONS.c
    conditions = list_conditions(wanted, OBSERVATIONS)
    # Make the query for the time of each launch's last row that counts, None where all count.
    oldest = sa.func.nullif(_query_time(wanted, most), _EVER)
    chosen = LAUNCHES.c.launch_key.in_(keys)
    bounds = (
        sa.select(LAUNCHES.c.launch_key, oldest.label("oldest_us")).where(chosen).subquery("bounds")
    )
    columns = (held.launch_key, held.measured_at_us, held.seconds, held.noise, held.run_count)
    both = sa.select(*columns).join_from(
        bounds, OBSERVATIONS, held.launch_key == bounds.c.launch_key
    )
    dated = both.where(
        held.measured_at_us >= sa.func.coalesce(bounds.c.oldest_us, _EVER), *conditions
    )
    undated = both.where(bounds.c.oldest_us.is_(None), held.measured_at_us.is_(None), *conditions)
    return sa.union_all(dated, undated)


def _query_time(wanted: Selection, most: int) -> sa.ScalarSelect[Any]:
    """Make the query for the time of a launch's newest row but `most - 1`, None without one."""
    own = OBSERVATIONS.alias("own")
    return (
        sa.select(sa.func.coalesce(own.c.measured_at_us, _EVER))
        .where(own.c.launch_key == LAUNCHES.c.launch_key, *list_conditions(wanted, own))
        .order_by(own.c.measured_at_us.desc().nulls_last())
        .limit(1)
        .offset(most - 1)
        .scalar_subquery()
    )
