"""Answers that were given, with what was observed of them, and how good they were."""

import asyncio
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from pydantic import AwareDatetime, BeforeValidator, Field

from kernelcast.service.dependencies import Reader
from kernelcast.service.schemas.common import Open, Text, of_record, read_number
from kernelcast.service_state import AnswerFilter, AnswerRecord

router = APIRouter(tags=["answers"])
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


@router.get("/answers")
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


@router.get("/accuracy")
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
