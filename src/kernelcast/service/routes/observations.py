"""Observations of the store: which there are, removing and correcting them."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import AwareDatetime

from kernelcast.collection.data_rows import CORRECTED, REMOVED, Correction, describe_selection
from kernelcast.launches.data_store import Selection
from kernelcast.records.errors import InputError
from kernelcast.records.observation import ObservationFlag, Origin
from kernelcast.service.dependencies import Admin, Reader
from kernelcast.service.errors import refuse_unknown
from kernelcast.service.schemas.common import Text, read_number, refuse_cursor
from kernelcast.service.schemas.observations import (
    CorrectionIn,
    FoundObservations,
    RemovedObservations,
    Seconds,
    StoredObservation,
)
from kernelcast.service.service import Service

router = APIRouter(tags=["observations"])
Many = Annotated[list[Text] | None, Query(max_length=100)]
Moment = Annotated[AwareDatetime | None, Query()]
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


@router.get("/observations")
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


@router.delete("/observations")
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


@router.delete("/observations/{key}")
async def remove_observation(key: str, call: Admin, reason: Reason = "") -> RemovedObservations:
    """Remove one observation."""
    before = await find_observation(key, call.service)
    await call.audit(REMOVED, key, {**before, **_write_reason(reason)})
    removed = await call.service.observing.remove(Selection(keys=(key,)))
    return RemovedObservations.model_validate({
        "count": 1, "observations": [before], "removed": removed, "is_dry_run": False,
    })  # fmt: skip


@router.patch("/observations/{key}")
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
