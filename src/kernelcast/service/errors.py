"""How the service says no: problem details of RFC 9457, and a code that programs can tell apart.

``{"type", "title", "status", "detail", "error": {"code", "message", "detail"}}``
"""

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, NoReturn

from starlette.responses import JSONResponse

from kernelcast.records import errors
from kernelcast.service.redaction import redact_paths
from kernelcast.service_state import StoreError


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """A kind of error as callers see it."""

    status: int
    code: str


class ApiError(Exception):
    """Is raised by the service itself."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        detail: object = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.detail = detail
        self.retry_after_s = retry_after_s


_UNUSABLE = HTTPStatus.UNPROCESSABLE_ENTITY
_AWAY = HTTPStatus.SERVICE_UNAVAILABLE
# Every kind of error; of a class that is not here its nearest base counts. What a submitted
# kernel does to a driver is no failure of the service: it is contained, and stays 422.
KINDS: Final[dict[type[Exception], ErrorKind]] = {
    errors.KernelcastError: ErrorKind(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error"),
    StoreError: ErrorKind(_AWAY, "database_unavailable"),
    errors.InputError: ErrorKind(_UNUSABLE, "invalid_input"),
    errors.ProblemFileError: ErrorKind(_UNUSABLE, "invalid_problem"),
    errors.MachineFileError: ErrorKind(_UNUSABLE, "invalid_machine"),
    errors.UnknownMachineError: ErrorKind(HTTPStatus.NOT_FOUND, "unknown_machine"),
    errors.NDRangeError: ErrorKind(_UNUSABLE, "invalid_sizes"),
    errors.SignatureError: ErrorKind(_UNUSABLE, "arguments_do_not_fit"),
    errors.OverrunError: ErrorKind(_UNUSABLE, "leaves_a_buffer"),
    errors.KernelNotFoundError: ErrorKind(_UNUSABLE, "kernel_not_found"),
    errors.CompileError: ErrorKind(_UNUSABLE, "compile_error"),
    errors.PersistentKernelError: ErrorKind(_UNUSABLE, "persistent_kernel"),
    errors.EventTimesError: ErrorKind(_UNUSABLE, "wrong_event_times"),
    errors.MissingExtraError: ErrorKind(HTTPStatus.NOT_IMPLEMENTED, "missing_extra"),
    errors.UnknownDeviceError: ErrorKind(HTTPStatus.NOT_FOUND, "unknown_device"),
    errors.RecordingError: ErrorKind(_UNUSABLE, "invalid_recording"),
    errors.DeviceError: ErrorKind(_UNUSABLE, "device_cannot_answer"),
    errors.NoDeviceError: ErrorKind(_AWAY, "no_device"),
    errors.BrokenDeviceError: ErrorKind(_AWAY, "broken_device"),
    errors.DeviceLimitError: ErrorKind(_UNUSABLE, "device_limit"),
    errors.KernelRunError: ErrorKind(_UNUSABLE, "kernel_crashed"),
    errors.MeasurementError: ErrorKind(_UNUSABLE, "measurement_failed"),
    errors.EstimateTimeoutError: ErrorKind(_UNUSABLE, "kernel_timeout"),
    errors.NoAnswerYetError: ErrorKind(_AWAY, "no_answer_yet"),
}


def kind_of(error: BaseException) -> ErrorKind:
    if isinstance(error, ApiError):
        return ErrorKind(error.status, error.code)
    known = (KINDS[one] for one in type(error).__mro__ if one in KINDS)
    return next(known, KINDS[errors.KernelcastError])


def message_of(error: BaseException) -> str:
    """Say to callers what is wrong; what is inside the service is for its log."""
    kind = kind_of(error)
    if kind.code == "database_unavailable":
        return "the database does not answer as it should; try again in a moment"
    if kind.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return "the service failed; please report it with the request id"
    return str(error) if isinstance(error, ApiError) else redact_paths(str(error))


def describe_error(code: str, message: str, detail: object = None) -> dict[str, Any]:
    """Describe an error inside an answer, such as that of one device of several."""
    return {"error": {"code": code, "message": message, "detail": detail}}


class ErrorResponse(JSONResponse):
    """Says no as RFC 9457 has it; `error` is what callers read before there was that."""

    media_type = "application/problem+json"

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        detail: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        content = {
            "type": f"urn:kernelcast:error:{code}",
            "title": code.replace("_", " ").capitalize(),
            "status": int(status),
            "detail": message,
            **describe_error(code, message, detail),
        }
        super().__init__(content, int(status), headers)


def retry_after(error: BaseException) -> int | None:
    """Say when to ask again, in seconds; None where that would not help."""
    if isinstance(error, ApiError):
        return error.retry_after_s
    # Nobody knows better when to ask again.
    return 2 if kind_of(error).status == HTTPStatus.SERVICE_UNAVAILABLE else None


def refuse_unknown(what: str, name: str) -> NoReturn:
    raise ApiError(HTTPStatus.NOT_FOUND, f"unknown_{what}", f"there is no {what} {name!r}")


def refuse_amount(what: str, count: int, most: int) -> NoReturn:
    raise ApiError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"too_many_{what}",
        f"{count} {what} in one request; send at most {most} at once",
    )
