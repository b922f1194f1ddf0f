"""Answers that were given, and observations: listed, summed up, removed and corrected."""

import asyncio
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import AwareDatetime, BeforeValidator, Field

from kernelcast.collection.data_rows import CORRECTED, REMOVED, Correction, describe_selection
from kernelcast.launches.data_store import Selection
from kernelcast.records.errors import InputError
from kernelcast.records.observation import ObservationFlag, Origin
from kernelcast.service.dependencies import Admin, Reader, Route
from kernelcast.service.errors import refuse_unknown
from kernelcast.service.schemas import (
    CorrectionIn,
    FoundObservations,
    Open,
    RemovedObservations,
    Seconds,
    StoredObservation,
    Text,
    of_record,
    read_number,
    refuse_cursor,
)
from kernelcast.service.service import Service
from kernelcast.service_state import AnswerFilter, AnswerRecord

router = APIRouter(route_class=Route)
Many = Annotated[list[Text] | None, Query(max_length=100)]
Moment = Annotated[AwareDatetime | None, Query()]
Key = Literal["week", "device", "kernel", "tier"]
_COLUMNS = {"week": "week", "device": "device_id", "kernel": "kernel", "tier": "tier"}


@of_record(AnswerRecord)
class AnswerOut(Open):
    """An answer, and the last observation of its launch before the next answer."""

    id: Annotated[str, BeforeValidator(str)] = Field(description="Grows with time.")
    at: datetime = Field(description="When it was given first.")
    asked: int = Field(description="How often it was given within an hour.")
    launch_key: str = Field(description="As of observations.")
    slowdown: float = Field(description="By other programs then: 1 on an idle machine.")
    cost_s: float = Field(description="Samples, build and the rest, in seconds.")
    caller: str = Field(description="Id of the token.")
    observed: int = Field(description="Observations of the launch before its next answer.")
    error: float | None = Field(description="|predicted - measured| / measured, of the last.")
    is_inside: bool | None = Field(description="Whether the interval held the last.")


class AnswersOut(Open):
    """A part of the answers, newest first."""

    answers: list[AnswerOut]
    next: str | None = Field(description="For the parameter `next`; null where nothing follows.")


class AccuracyRow(Open):
    """How good some answers were; numbers of observations are null where there were none."""

    week: datetime | None = Field(default=None, description="The Monday it begins with, UTC.")
    device_id: str | None = None
    kernel: str | None = None
    tier: str | None = None
    asked: int = Field(description="Answers given, repeats included.")
    made: int = Field(description="Of these those that were made anew.")
    observed: int = Field(description="Observations of launches that were answered before.")
    error: float | None = Field(description="Mean of |predicted - measured| / measured.")
    ratio: float | None = Field(description="Predicted over measured, geometric mean.")
    coverage: float | None = Field(description="Share of observations inside their interval.")
    cost_s: float | None = Field(description="Mean cost of an answer that was made, in seconds.")
    cost_share: float | None = Field(description="Costs over predicted times.")


class AccuracyOut(Open):
    """How good answers were, by what was asked for."""

    rows: list[AccuracyRow]


def read_filter(
    kernel: Many = None,
    device: Many = None,
    tier: Many = None,
    observed: Annotated[bool | None, Query(description="Only observed ones, or none.")] = None,
    given_from: Moment = None,
    given_before: Moment = None,
) -> AnswerFilter:
    return AnswerFilter(
        kernels=tuple(kernel or ()),
        devices=tuple(device or ()),
        tiers=tuple(tier or ()),
        is_observed=observed,
        given_from=given_from,
        given_before=given_before,
    )


Wanted = Annotated[AnswerFilter, Depends(read_filter)]


@router.get("/answers", tags=["answers"])
async def list_answers(
    wanted: Wanted,
    call: Reader,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    next: Annotated[str | None, Query(max_length=40)] = None,  # noqa: A002 - the API's word
) -> AnswersOut:
    """List answers, newest first, each with what was observed of it."""
    before = None if next is None else read_number(next)
    await call.service.answers.flush()
    found = await asyncio.to_thread(
        call.service.state.answers.find, wanted, most=limit + 1, before=before
    )
    return AnswersOut(
        answers=[AnswerOut.model_validate(one) for one in found[:limit]],
        next=str(found[limit - 1].id) if len(found) > limit else None,
    )


@router.get("/accuracy", tags=["answers"])
async def show_accuracy(
    wanted: Wanted,
    call: Reader,
    by: Annotated[list[Key] | None, Query(description="What has a row each.")] = None,
) -> AccuracyOut:
    """Show error, coverage and cost of answers by device, kernel, tier and week.

    Whole weeks count: `given_from` means the week that it is in. `observed` is not looked at.
    """
    await call.service.answers.flush()
    columns = [_COLUMNS[one] for one in dict.fromkeys(by or ("device",))]
    rows = await asyncio.to_thread(call.service.state.answers.sum_up, columns, wanted)
    return AccuracyOut.model_validate({"rows": rows})


Time = Annotated[Seconds | None, Query()]
Most = Annotated[int, Query(ge=0, le=1000, description="As `limit`.", deprecated=True)]
Limit = Annotated[int | None, Query(ge=1, le=1000)]
Sizes = Annotated[str, Query(max_length=80, pattern=r"^\d+(,\d+){0,2}$")]
Reason = Annotated[str, Query(max_length=500, description="For the audit log.")]


def read_selection(  # noqa: PLR0913 - each is a parameter of the query
    key: Many = None,
    measurement: Many = None,
    kernel: Many = None,
    device: Many = None,
    launch: Many = None,
    origin: Annotated[list[Origin] | None, Query()] = None,
    flag: Annotated[list[ObservationFlag] | None, Query()] = None,
    measured_from: Moment = None,
    measured_before: Moment = None,
    least_seconds: Time = None,
    most_seconds: Time = None,
) -> Selection:
    """Read which observations are meant: of each parameter one of its values, of all together."""
    return Selection(
        keys=tuple(key or ()),
        measurements=tuple(measurement or ()),
        kernels=tuple(kernel or ()),
        devices=tuple(device or ()),
        launch_keys=tuple(launch or ()),
        origins=tuple(origin or ()),
        with_flags=frozenset(flag or ()),
        measured_from=measured_from,
        measured_before=measured_before,
        least_seconds=least_seconds or 0.0,
        most_seconds=most_seconds or float("inf"),
    )


Selected = Annotated[Selection, Depends(read_selection)]


@router.get("/observations", tags=["observations"])
async def list_observations(
    wanted: Selected,
    call: Reader,
    most: Most = 100,
    limit: Limit = None,
    global_size: Sizes | None = None,
    next: Annotated[str | None, Query(max_length=100)] = None,  # noqa: A002 - the API's word
) -> FoundObservations:
    """List observations, newest first by the time of measurement; all where nothing says which."""
    sizes = tuple(map(int, global_size.split(","))) if global_size else ()
    after = None if next is None else read_cursor(next)
    most = most if limit is None else limit
    observing = call.service.observing
    rows, last = await observing.list(wanted, most=most, after=after, global_size=sizes)
    return FoundObservations.model_validate({
        "count": await observing.count(wanted, sizes), "observations": rows,
        "next": None if last is None else write_cursor(last),
    })  # fmt: skip


@router.delete("/observations", tags=["observations"])
async def remove_observations(
    wanted: Selected,
    call: Admin,
    *,
    dry_run: bool = False,
    most: Most = 100,
    reason: Reason = "",
) -> RemovedObservations:
    """Remove observations; say at least one thing of them. Answers that rested on them go, too."""
    if not describe_selection(wanted):
        raise InputError("every observation would be removed; say which are meant, as by `kernel`")
    observing = call.service.observing
    count = await observing.count(wanted)
    rows, _ = await observing.list(wanted, most=most)
    removed = 0
    if count and not dry_run:
        detail = {**describe_selection(wanted), **_write_reason(reason)}
        await call.audit(REMOVED, f"{count} observations", detail)
        removed = await observing.remove(wanted)
    return RemovedObservations.model_validate({
        "count": count, "observations": rows, "removed": removed, "is_dry_run": dry_run,
    })  # fmt: skip


@router.delete("/observations/{key}", tags=["observations"])
async def remove_observation(key: str, call: Admin, reason: Reason = "") -> RemovedObservations:
    """Remove one observation."""
    before = await find_observation(key, call.service)
    await call.audit(REMOVED, key, {**before, **_write_reason(reason)})
    removed = await call.service.observing.remove(Selection(keys=(key,)))
    return RemovedObservations.model_validate({
        "count": 1, "observations": [before], "removed": removed, "is_dry_run": False,
    })  # fmt: skip


@router.patch("/observations/{key}", tags=["observations"])
async def correct_observation(key: str, asked: CorrectionIn, call: Admin) -> StoredObservation:
    """Correct one observation; its launch and its key stay."""
    before = await find_observation(key, call.service)
    flags = {
        ObservationFlag.FIRST_LAUNCH: asked.is_first_launch,
        ObservationFlag.CONTAMINATED: asked.is_contaminated,
        ObservationFlag.DOUBTED: asked.is_doubted,
    }
    correction = Correction(
        durations_s=asked.durations_s,
        measured_at=asked.measured_at,
        flags={flag: is_set for flag, is_set in flags.items() if is_set is not None},
    )
    told = asked.model_dump(mode="json", exclude_unset=True)
    await call.audit(CORRECTED, key, {"before": before, "asked": told})
    return StoredObservation.model_validate(await call.service.observing.correct(key, correction))


async def find_observation(key: str, service: Service) -> dict[str, object]:
    rows, _ = await service.observing.list(Selection(keys=(key,)), most=1)
    if not rows:
        refuse_unknown("observation", key)
    return dict(rows[0])


def read_cursor(text: str) -> tuple[int | None, str]:
    time, _, key = text.partition(".")
    if not key.isalnum():
        refuse_cursor(text)
    return (read_number(time) if time else None), key


def write_cursor(place: tuple[int | None, str]) -> str:
    """Write the place behind which a list goes on."""
    time, key = place
    return f"{'' if time is None else time}.{key}"


def _write_reason(reason: str) -> dict[str, object]:
    return {"reason": reason} if reason else {}
