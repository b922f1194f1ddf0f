"""Answers that were given, what was observed of them, and both beside all observations."""

import math
import secrets
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import sqlalchemy as sa

from kernelcast.records.service_state import ANSWER_ID_BITS, AnswerRecord
from kernelcast.service_state.tables import (
    Table,
    grow,
    make_table,
    name_global_size,
    select_record,
    write_row,
)
from kernelcast.training_data.store.connecting import fetch
from kernelcast.training_data.store.schema import (
    OBSERVATIONS,
    Selection,
    dump,
    dump_time,
    list_conditions,
)

ANSWERS = make_table("service_answers", AnswerRecord, "id")
"""Answers, each with what was observed of it last; repeats within an hour are counted."""
for _name in ("launch_key", "kernel", "device_id"):  # the end of each is the order of reading
    sa.Index(f"ix_service_answers_{_name}", ANSWERS.c[_name], ANSWERS.c.id)

WEEK_KEYS = ("week", "device_id", "kernel", "tier")
WEEK_SUMS = ("asked", "made", "cost_s", "predicted_s", "observed", "inside", "error", "log_ratio")
_COUNTS = {"asked", "made", "observed", "inside"}
WEEKS = make_table(
    "service_answer_weeks",
    {
        "week": datetime, **dict.fromkeys(WEEK_KEYS[1:], str),
        **{name: int if name in _COUNTS else float for name in WEEK_SUMS},
    },
    *WEEK_KEYS,
)  # fmt: skip
"""Sums over the answers of a week, so that a page need not read millions of them."""

_AT_ONCE: Final = 500
_NOTED: Final = ("measured_s", "observed_at", "error", "is_inside")
_COLUMNS = ANSWERS.c
_FOUND = select_record(ANSWERS, AnswerRecord)
_Condition = sa.ColumnElement[bool] | sa.TextClause


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFilter:
    """Which answers are meant; what is empty says nothing."""

    kernels: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    global_sizes: tuple[tuple[int, ...], ...] = ()
    is_observed: bool | None = None
    given_from: datetime | None = None
    given_before: datetime | None = None

    def list_conditions(self, table: sa.Table) -> list[sa.ColumnElement[bool]]:
        """Write the filter as conditions on answers or on their sums."""
        held = table.c
        found: list[sa.ColumnElement[bool]] = [
            held[name].in_(values)
            for name, values in (
                ("kernel", self.kernels), ("device_id", self.devices), ("tier", self.tiers),
            )
            if values
        ]  # fmt: skip
        is_summed = table is WEEKS
        place = held.week if is_summed else held.id
        if (at := self.given_from) is not None:
            found.append(place >= (begin_week(at) if is_summed else make_id(at, 0)))
        if (at := self.given_before) is not None:
            found.append(place < (at if is_summed else make_id(at, 0)))
        if self.global_sizes and not is_summed:
            found.append(held.global_size.in_(self.global_sizes))
        if self.is_observed is not None and not is_summed:
            found.append(held.observed > 0 if self.is_observed else held.observed == 0)
        return found


def make_id(at: datetime, number: int | None = None) -> int:
    """Make the id of an answer that was given at a time."""
    low = secrets.randbits(ANSWER_ID_BITS) if number is None else number
    return (dump_time(at) or 0) << ANSWER_ID_BITS | low


def begin_week(at: datetime) -> datetime:
    day = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return day - timedelta(days=day.weekday())


class AnswerTable(Table):
    def write(
        self,
        new: Sequence[AnswerRecord],
        repeats: Mapping[int, int],
        observed: Sequence[tuple[str, float, datetime]],
    ) -> list[AnswerRecord]:
        """Store answers, repeats by id, and observations (launch key, seconds, when) as a whole.

        Each observation's answer is given with it.
        """
        with self._database.write() as connection:
            if new:
                rows = [write_row(record) for record in new]
                connection.execute(sa.insert(ANSWERS), rows)
            # Count repeats; give the answers with these counts, as their weeks are summed up by.
            again = []
            for part in _cut([*repeats]):
                for one in fetch(connection, _FOUND.where(_COLUMNS.id.in_(part)), AnswerRecord):
                    number = repeats[one.id]
                    connection.execute(
                        sa.update(ANSWERS)
                        .where(_COLUMNS.id == one.id)
                        .values(asked=_COLUMNS.asked + number)
                    )
                    again.append(replace(one, asked=number, cost_s=0.0, seconds=0.0))
            compared = self._compare(connection, observed)
            # A repeat has a count and no time of its own.
            sums: defaultdict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
            for one in (*new, *again):
                given: dict[str, Any] = {
                    "asked": one.asked, "made": int(one.seconds > 0), "cost_s": one.cost_s,
                    "predicted_s": one.seconds,
                }  # fmt: skip
                sums[_name_week(one)].update(given)
            for each in compared:
                seen: dict[str, Any] = {
                    "observed": 1, "inside": int(bool(each.is_inside)), "error": each.error,
                    "log_ratio": each.log_ratio,
                }  # fmt: skip
                sums[_name_week(each)].update(seen)
            weeks = [
                {**dict(zip(WEEK_KEYS, key, strict=True)), **dict.fromkeys(WEEK_SUMS, 0), **added}
                for key, added in sums.items()
            ]
            grow(connection, WEEKS, WEEK_KEYS, WEEK_SUMS, weeks)
        return compared

    def find(
        self, wanted: AnswerFilter, *, most: int, before: int | None = None
    ) -> list[AnswerRecord]:
        query = _FOUND.where(*wanted.list_conditions(ANSWERS)).order_by(_COLUMNS.id.desc())
        if before is not None:
            query = query.where(_COLUMNS.id < before)
        return self._database.fetch(query.limit(most), AnswerRecord)

    def sum_up(self, by: Sequence[str], wanted: AnswerFilter) -> list[dict[str, Any]]:
        """Sum up answers by some of week, device_id, kernel and tier; newest weeks first.

        ``error`` and ``cost_s`` are means, ``ratio`` the geometric mean of predicted over measured,
        ``coverage`` the share of observations inside their intervals.
        """
        keys = [WEEKS.c[name].label(name) for name in by]
        sums = [sa.func.sum(WEEKS.c[name]).label(name) for name in WEEK_SUMS]
        query = sa.select(*keys, *sums).where(*wanted.list_conditions(WEEKS)).group_by(*keys)
        query = query.order_by(*(key.desc() if key.key == "week" else key for key in keys))
        with self._database.read() as connection:
            rows = connection.execute(query).mappings().all()
        found = []
        for row in rows:
            observed, made = row["observed"], row["made"]
            found.append({
                **{name: row[name] for name in by},
                "asked": int(row["asked"]),
                "made": int(made),
                "observed": int(observed),
                "error": row["error"] / observed if observed else None,
                "ratio": math.exp(row["log_ratio"] / observed) if observed else None,
                "coverage": row["inside"] / observed if observed else None,
                "cost_s": row["cost_s"] / made if made else None,
                "cost_share": row["cost_s"] / row["predicted_s"] if row["predicted_s"] else None,
            })  # fmt: skip
        return found

    def prune(self, *, most: int, before: datetime) -> int:
        """Forget answers that are too old or too many; give how many there were."""
        last = sa.select(_COLUMNS.id).order_by(_COLUMNS.id.desc()).offset(most).limit(1)
        with self._database.write() as connection:
            newest = connection.scalar(last)
            oldest = max(make_id(before, 0) - 1, -1 if newest is None else newest)
            connection.execute(sa.delete(WEEKS).where(WEEKS.c.week < begin_week(before)))
            return connection.execute(sa.delete(ANSWERS).where(_COLUMNS.id <= oldest)).rowcount

    def list_observations(
        self,
        wanted: Selection,
        *,
        most: int,
        after: tuple[int | None, str] | None = None,
        global_size: tuple[int, ...] = (),
    ) -> list[tuple[int | None, str]]:
        """List time (us) and key of observations, newest first, then those without a time."""
        held = OBSERVATIONS.c
        query = sa.select(held.measured_at_us, held.key).where(*self._select(wanted, global_size))
        dated = query.where(held.measured_at_us.is_not(None))
        dated = dated.order_by(held.measured_at_us.desc(), held.key.desc())
        undated = query.where(held.measured_at_us.is_(None)).order_by(held.key.desc())
        found: list[tuple[int | None, str]] = []
        with self._database.read() as connection:
            if after is None or after[0] is not None:
                if after is not None:
                    place = sa.tuple_(held.measured_at_us, held.key)
                    dated = dated.where(place < sa.tuple_(*map(sa.literal, after)))
                found += [tuple(row) for row in connection.execute(dated.limit(most))]
                after = None
            if len(found) < most:
                if after is not None:
                    undated = undated.where(held.key < after[1])
                rest = undated.limit(most - len(found))
                found += [tuple(row) for row in connection.execute(rest)]
        return found

    def count_observations(self, wanted: Selection, global_size: tuple[int, ...] = ()) -> int:
        query = sa.select(sa.func.count()).select_from(OBSERVATIONS)
        with self._database.read() as connection:
            return connection.scalar(query.where(*self._select(wanted, global_size))) or 0

    def _select(self, wanted: Selection, global_size: tuple[int, ...]) -> list[_Condition]:
        found: list[_Condition] = [*list_conditions(wanted, OBSERVATIONS)]
        if wanted.with_flags:  # hardly any have one: an index holds these alone
            found.append(sa.text("observations.flags <> ''"))
        if global_size:
            size = name_global_size(self._database.engine.dialect)
            found.append(sa.literal_column(size, sa.Text) == dump([list(global_size)])[:-1])
        return found

    def _compare(
        self, connection: sa.Connection, observed: Sequence[tuple[str, float, datetime]]
    ) -> list[AnswerRecord]:
        """Note what was observed of the last answer to each launch."""
        answers: dict[str, AnswerRecord] = {}
        for part in _cut([*{key for key, _, _ in observed}]):
            newest = (
                sa.select(sa.func.max(_COLUMNS.id))
                .where(_COLUMNS.launch_key.in_(part))
                .group_by(_COLUMNS.launch_key)
            )
            found = fetch(connection, _FOUND.where(_COLUMNS.id.in_(newest)), AnswerRecord)
            answers |= {one.launch_key: one for one in found}
        compared = []
        for key, measured_s, at in observed:
            answer = answers.get(key)
            if answer is None:
                continue
            one = answer.observe(measured_s, at)
            compared.append(one)
            noted = {name: getattr(one, name) for name in _NOTED}
            changed = sa.update(ANSWERS).where(_COLUMNS.id == answer.id)
            connection.execute(changed.values(observed=_COLUMNS.observed + 1, **noted))
        return compared


def _cut(values: Sequence[Any]) -> list[Sequence[Any]]:
    return [values[place : place + _AT_ONCE] for place in range(0, len(values), _AT_ONCE)]


def _name_week(one: AnswerRecord) -> tuple[Any, ...]:
    return begin_week(one.at), one.device_id, one.kernel, one.tier
