"""Observations of the store: which there are, removing and correcting them."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import AwareDatetime

from kernelcast.collection.data_editing import CORRECTED, REMOVED, Correction, describe_selection
from kernelcast.launches.data_store import Selection
from kernelcast.records.observation import ObservationFlag, Origin
from kernelcast.service.dependencies import Admin, OurService, Reader, audit
from kernelcast.service.errors import refuse_unknown
from kernelcast.service.schemas.common import Text
from kernelcast.service.schemas.observations import (
    CorrectionIn,
    FoundObservations,
    RemovedObservations,
    Seconds,
    StoredObservation,
)

router = APIRouter(tags=["observations"])
Many = Annotated[list[Text] | None, Query(max_length=100)]
Moment = Annotated[AwareDatetime | None, Query()]
Time = Annotated[Seconds | None, Query()]
Most = Annotated[int, Query(ge=0, le=1000)]


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
    wanted: Selected, service: OurService, _: Reader, most: Most = 100
) -> FoundObservations:
    """List observations; all where nothing says which."""
    found = await service.editing.find(wanted, most=most)
    return FoundObservations.model_validate({"count": found.count, "observations": found.rows})


@router.delete("/observations")
async def remove_observations(
    wanted: Selected,
    request: Request,
    service: OurService,
    caller: Admin,
    *,
    dry_run: bool = False,
    most: Most = 100,
) -> RemovedObservations:
    """Remove observations; say at least one thing of them. Answers that rested on them go, too."""
    service.editing.check(wanted)
    found = await service.editing.find(wanted, most=most)
    removed = 0
    if found.count and not dry_run:
        subject, detail = f"{found.count} observations", describe_selection(wanted)
        await audit(request, service, caller, REMOVED, subject, detail)
        removed = await service.editing.remove(wanted)
    return RemovedObservations.model_validate({
        "count": found.count, "observations": found.rows, "removed": removed,
        "is_dry_run": dry_run,
    })  # fmt: skip


@router.delete("/observations/{key}")
async def remove_observation(
    key: str, request: Request, service: OurService, caller: Admin
) -> RemovedObservations:
    """Remove one observation."""
    wanted = Selection(keys=(key,))
    found = await service.editing.find(wanted, most=1)
    if not found.count:
        refuse_unknown("observation", key)
    await audit(request, service, caller, REMOVED, key, dict(found.rows[0]))
    removed = await service.editing.remove(wanted)
    return RemovedObservations.model_validate({
        "count": found.count, "observations": found.rows, "removed": removed, "is_dry_run": False,
    })  # fmt: skip


@router.patch("/observations/{key}")
async def correct_observation(
    key: str, asked: CorrectionIn, request: Request, service: OurService, caller: Admin
) -> StoredObservation:
    """Correct one observation; its launch and its key stay."""
    found = await service.editing.find(Selection(keys=(key,)), most=1)
    if not found.count:
        refuse_unknown("observation", key)
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
    told: dict[str, object] = {
        "before": dict(found.rows[0]),
        "asked": asked.model_dump(mode="json", exclude_unset=True),
    }
    await audit(request, service, caller, CORRECTED, key, told)
    return StoredObservation.model_validate(await service.editing.correct(key, correction))
