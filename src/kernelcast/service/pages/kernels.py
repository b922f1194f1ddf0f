"""Kernels: estimates and observations in one table, times by device, and a page for each kernel."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from http import HTTPStatus
from itertools import islice
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Depends
from pydantic import ValidationError
from starlette.responses import RedirectResponse, Response

from kernelcast.launches.data_store import Selection
from kernelcast.records.errors import InputError
from kernelcast.records.observation import ObservationFlag, Origin
from kernelcast.reports.charts import (
    Axis,
    Chart,
    Figure,
    Point,
    chart_predictions,
    clip_seconds,
    make_series,
)
from kernelcast.service.dependencies import (
    Admin,
    Call,
    Name,
    Reader,
    Route,
    SentForm,
)
from kernelcast.service.errors import refuse_unknown
from kernelcast.service.pages.rendering import (
    group_points,
    link_kernel,
    mark_answer,
    render,
    run_in_thread,
    show,
    with_pictures,
    write_size,
)
from kernelcast.service.routes.estimates import (
    CorrectionIn,
    correct_observation,
    find_observation,
    read_cursor,
    read_number,
    remove_observation,
    write_cursor,
)
from kernelcast.service.service import Service
from kernelcast.service_state import AnswerFilter, AnswerRecord

router = APIRouter(route_class=Route)
_LOOKED_AT: Final = 2000
_MOST_HISTORIES: Final = 12
SHOWN: Final = {
    "": "estimates and observations",
    "estimates": "estimates",
    **{one.value: f"{one.value} observations" for one in Origin},
}
_FLAGS: Final = {"first_launch": "is_first_launch", "contaminated": "is_contaminated",
                 "doubted": "is_doubted"}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What the table is narrowed to, out of the address; an empty text says nothing."""

    kernel: Name = ""
    device: Name = ""
    size: Name = ""
    since: Name = ""
    until: Name = ""
    show: Name = ""
    doubted: Name = ""

    @property
    def query(self) -> str:
        """The address's query, without the place in the list."""
        return urlencode({name: one for name in self.__slots__ if (one := getattr(self, name))})

    @property
    def sizes(self) -> tuple[int, ...]:
        """The global size that is meant; empty for any."""
        parts = self.size.replace("x", ",").replace(" ", "").split(",") if self.size else []
        if len(parts) > 3 or not all(one.isdecimal() and len(one) < 19 for one in parts):
            raise InputError(f"size: {self.size!r}: give a global size such as 1024, 512")
        return tuple(map(int, parts))


Chosen = Annotated[Filters, Depends()]


def _read_day(name: str, text: str, at: time) -> datetime | None:
    if not text:
        return None
    try:
        return datetime.combine(date.fromisoformat(text), at, UTC)
    except ValueError as error:
        raise InputError(f"{name}: {text!r}: give a day such as 2026-11-27") from error


async def read_entries(
    service: Service, chosen: Filters, at: str, most: int = 50
) -> tuple[list[tuple[datetime | None, str, Any]], str]:
    """Read estimates and observations, newest first: when each was, which list it is of, and what
    that has of it; and the places in both lists where it goes on."""
    if chosen.show not in SHOWN:
        raise InputError(f"show: {chosen.show!r}: give one of {', '.join(filter(None, SHOWN))}")
    places = dict(zip(("answer", "observation"), [*at.split("_"), "", ""], strict=False))
    devices = (chosen.device,) if chosen.device else ()
    bare, sizes = chosen.kernel.rpartition("/")[2], chosen.sizes
    since = _read_day("since", chosen.since, time.min)
    until = _read_day("until", chosen.until, time.max)
    found: list[tuple[datetime | None, str, Any, str]] = []
    if chosen.show in {"", "estimates"} and not chosen.doubted:
        answers = AnswerFilter(
            kernels=(chosen.kernel, bare) if chosen.kernel else (),
            devices=devices,
            global_sizes=(sizes,) if sizes else (),
            given_from=since,
            given_before=until,
        )
        await service.answers.flush()
        before = read_number(places["answer"]) if places["answer"] else None
        records = await asyncio.to_thread(
            service.state.answers.find, answers, most=most + 1, before=before
        )
        found += ((one.at, "answer", one, str(one.id)) for one in records)
    if chosen.show != "estimates":
        observations = Selection(
            kernels=(bare,) if chosen.kernel else (),
            devices=devices,
            origins=(Origin(chosen.show),) if chosen.show else (),
            with_flags=frozenset({ObservationFlag.DOUBTED} if chosen.doubted else ()),
            measured_from=since,
            measured_before=until,
        )
        after = read_cursor(places["observation"]) if places["observation"] else None
        rows, _ = await service.observing.list(
            observations, most=most + 1, after=after, global_size=sizes
        )
        for row in rows:
            told = row["measured_at"]
            when = None if told is None else datetime.fromisoformat(str(told))
            place = (None if when is None else round(when.timestamp() * 1e6), str(row["key"]))
            found.append((when, "observation", row, write_cursor(place)))
    oldest = datetime.min.replace(tzinfo=UTC)
    found.sort(key=lambda one: one[0] or oldest, reverse=True)
    places |= {kind: cursor for _, kind, _, cursor in found[:most]}
    more = f"{places['answer']}_{places['observation']}" if len(found) > most else ""
    return [one[:3] for one in found[:most]], more


def place_problems(
    answers: Sequence[AnswerRecord],
) -> list[dict[str, tuple[AnswerRecord, str]]]:
    """Sort answers, newest first, by problem and device, each with a word on how it compares."""
    found: dict[str, dict[str, AnswerRecord]] = {}
    for one in answers:
        found.setdefault(one.problem_digest, {}).setdefault(one.device_id, one.as_it_was)
    placed = []
    for own in islice((one for one in found.values() if len(one) > 1), 40):
        fastest = min(own.values(), key=lambda one: one.seconds)
        words = {
            device: "cannot be told apart" if one.low <= fastest.high else ""
            for device, one in own.items()
            if one is not fastest
        }
        words[fastest.device_id] = "shortest" if any(words.values()) else "fastest"
        placed.append({device: (one, words[device]) for device, one in own.items()})
    return placed


@router.get("/kernels")
async def show_entries(
    page: Reader,
    chosen: Chosen,
    next: Name = "",  # noqa: A002 - the API's word
) -> Response:
    entries, more = await read_entries(page.service, chosen, next)
    values = {
        "entries": entries, "more": more, "chosen": chosen, "shown": SHOWN, "is_begin": not next,
    }  # fmt: skip
    return render(page.request, "kernels/list.html", values)


@router.get("/kernels/devices")
async def show_placements(page: Reader, device: Name = "") -> Response:
    """Show what a scheduler asks: the last problems, what each device takes, which is fastest."""
    await page.service.answers.flush()
    wanted = AnswerFilter(devices=(device,) if device else ())
    answers = await asyncio.to_thread(page.service.state.answers.find, wanted, most=_LOOKED_AT)
    placed = place_problems(answers)
    devices = sorted({one for each in placed for one in each})
    return render(page.request, "kernels/devices.html", {"placed": placed, "devices": devices})


@router.get("/kernels/observation")
async def show_observation(page: Reader, key: Name) -> Response:
    return _render_observation(page, await find_observation(key, page.service))


@router.post("/kernels/observation/{change}")
async def change_observation(
    change: Literal["correct", "remove"], form: SentForm, page: Admin
) -> Response:
    """Correct or remove an observation, for a reason."""
    key, reason = form.first("key"), form.first("reason")
    one = await find_observation(key, page.service)
    if not 0 < len(reason) <= 500:
        why = "say why: the audit log keeps the reason, of at most 500 characters"
        return _render_observation(page, one, why)
    if change == "remove":
        await remove_observation(key, page, reason)
        return RedirectResponse(link_kernel(str(one["kernel"])), HTTPStatus.SEE_OTHER)
    asked: dict[str, Any] = {field: flag in form for flag, field in _FLAGS.items()}
    if form.first("seconds"):
        asked["seconds"] = form.first("seconds")
    try:
        correction = CorrectionIn.model_validate({**asked, "reason": reason}, strict=False)
    except ValidationError as error:
        return _render_observation(page, one, error.errors()[0]["msg"])
    await correct_observation(key, correction, page)
    return RedirectResponse(f"/kernels/observation?{urlencode({'key': key})}", HTTPStatus.SEE_OTHER)


def _render_observation(page: Call, one: Mapping[str, object], error: str = "") -> Response:
    values = {"one": one, "flags": _FLAGS, "error": error}
    return render(page.request, "kernels/observation.html", values)


@with_pictures(router, "/kernels/of")
async def show_kernel(page: Reader, name: Name) -> Response:
    service = page.service
    entries, more = await read_entries(service, Filters(kernel=name), "", most=20)
    launches, pictures = await run_in_thread(_look, service, name)
    if not entries:
        refuse_unknown("kernel among the launches that were observed or asked for", name)
    bare = name.rpartition("/")[2]
    newest = next((one for one in reversed(service.answers.recent) if one.kernel == bare), None)
    sums = await asyncio.to_thread(
        service.state.answers.sum_up, ("device_id", "tier"), AnswerFilter(kernels=(bare,))
    )
    values = {
        "kernel": name,
        "launches": launches,
        "sums": sums,
        "entries": entries,
        "more": more,
        "evidence": None if newest is None else newest.to_dict(),
    }
    return await show(page, "kernels/kernel.html", values, pictures)


def _look(service: Service, kernel: str) -> tuple[list[dict[str, Any]], dict[str, Figure]]:
    from kernelcast.reports.accuracy import read_kernel_launches

    launches = read_kernel_launches(service.observing.store, kernel)
    observed = AnswerFilter(kernels=(kernel.rpartition("/")[2],), is_observed=True)
    answers = [one.as_it_was for one in service.state.answers.find(observed, most=_LOOKED_AT)]
    found: dict[str, Figure] = {}
    points = [
        (f"answers by {one.tier} on {one.device_id}", mark_answer(one, write_size(one.global_size)))
        for one in answers
    ]
    for held in launches:
        label, device_id = write_size(held["global_size"]), held["device_id"]
        if held["linear_s"] is not None:
            point = Point(x=held["seconds"], y=held["linear_s"], label=label)
            points.append((f"samples on {device_id}", point))
        if held["remembered"] is not None:
            answer, measured_s = held["remembered"]
            point = Point(
                x=measured_s, y=answer.seconds, low=answer.low, high=answer.high, label=label
            )
            points.append((f"observations on {device_id}", point))
    if points:
        found["predicted"] = Figure(
            name="predicted",
            title=f"Predicted over measured times of {kernel}",
            caption="Answers that were observed; what samples said, and what observations "
            "before the newest one said of it.",
            charts=(chart_predictions(group_points(points), has_bounds=False),),
        )
    lines = [
        make_series(
            f"{write_size(held['global_size'])}, {held['device_id']}",
            [when.timestamp() for when, _ in held["times"]],
            [clip_seconds(seconds) for _, seconds in held["times"]], "line",
        )
        for held in launches if held["times"]
    ]  # fmt: skip
    if lines:
        found["history"] = Figure(
            name="history",
            title=f"Measured times of {kernel}",
            caption=f"The newest times of each launch, of at most {_MOST_HISTORIES} launches.",
            charts=(Chart(
                x=Axis(title="measured", unit="moment"),
                y=Axis(title="time", unit="s", is_log=True),
                series=tuple(lines[:_MOST_HISTORIES]),
            ),),
        )  # fmt: skip
    return launches, found
