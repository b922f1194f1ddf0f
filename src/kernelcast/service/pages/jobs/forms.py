"""Turns the forms of the page *Jobs* into what the API takes."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from kernelcast.records.errors import InputError
from kernelcast.records.service_state import JobKind
from kernelcast.service.pages.dependencies import Form
from kernelcast.service.schemas.jobs import JobRequest

_REQUEST: Final[TypeAdapter[Any]] = TypeAdapter(JobRequest)
_MINUTE_S: Final = 60.0
Read = Callable[[Form, str], Any]


def read_job(form: Form) -> tuple[JobKind, dict[str, Any]]:
    """Read what somebody wants to be done."""
    kind = form.get("kind")
    if kind not in _FIELDS:
        msg = f"kind: {kind[:40]!r} is no kind of job; choose of {', '.join(_FIELDS)}"
        raise InputError(msg)
    options = {
        name: value
        for name, read in _FIELDS[kind].items()
        if (value := read(form, name)) is not None
    }
    if "time_budget_minutes" in options:
        options["time_budget_seconds"] = _scale(options.pop("time_budget_minutes"))
    try:
        asked = _REQUEST.validate_python({"kind": kind, "options": options}, strict=False)
    except ValidationError as error:
        raise InputError(_tell(error)) from error
    return asked.kind, asked.options.model_dump(mode="json", exclude_unset=True, by_alias=True)


def _read_text(form: Form, name: str) -> str | None:
    return form.get(name) or None


def _read_words(form: Form, name: str) -> list[str] | None:
    """Read words between commas or blanks."""
    return form.get(name).replace(",", " ").split() or None


def _read_list(form: Form, name: str) -> list[str] | None:
    """Read boxes that were ticked."""
    return [one for one in form.list(name) if one] or None


def _read_flag(form: Form, name: str) -> bool | None:
    """Read a box: a form that has it says so by ``NAME_is_there``, ticked or not."""
    return name in form if f"{name}_is_there" in form else None


def _scale(minutes: str) -> float | str:
    """Give seconds of minutes; what is no number is told by whoever checks."""
    try:
        return float(minutes) * _MINUTE_S
    except ValueError:
        return minutes


_FIELDS: Final[Mapping[str, Mapping[str, Read]]] = {
    JobKind.COLLECT: {
        "devices": _read_list, "kernels": _read_words, "sizes": _read_text, "runs": _read_text,
        "time_budget_minutes": _read_text, "retry_failures": _read_flag,
    },
    JobKind.CALIBRATE: {"devices": _read_list, "effort": _read_text, "only": _read_words},
    JobKind.TRAIN: {"devices": _read_list, "model": _read_text, "validate": _read_flag},
    JobKind.VALIDATE: {
        "devices": _read_list, "models": _read_list, "split": _read_text,
        "shortest_seconds": _read_text, "least_work_groups": _read_text,
    },
    JobKind.COMPARE: {
        "first": _read_text, "second": _read_text, "devices": _read_list, "split": _read_text,
        "shortest_seconds": _read_text,
    },
}  # fmt: skip


def _tell(error: ValidationError) -> str:
    """Name the first field that is wrong."""
    first = error.errors()[0]
    where = [str(one) for one in first["loc"] if one not in {*JobKind, "options"}]
    return f"{' '.join(where).replace('_', ' ') or 'kind'}: {first['msg']}"
