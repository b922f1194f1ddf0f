"""How the service says no: problem details of RFC 9457, and a code that programs can tell apart.

``{"type", "title", "status", "detail", "error": {"code", "message", "detail"}}``
"""

from http import HTTPStatus
from typing import Any, Final, NoReturn

from starlette.responses import JSONResponse

from kernelcast.records import errors
from kernelcast.service.redaction import redact_paths
from kernelcast.service_state import StoreError


class ApiError(Exception):
    """Is raised by the service itself; `as_api_error` makes one of what others raise."""

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

    def describe(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, "detail": self.detail}


_UNUSABLE = HTTPStatus.UNPROCESSABLE_ENTITY
_AWAY = HTTPStatus.SERVICE_UNAVAILABLE
# Every kind of error; of a class that is not here its nearest base counts. What a submitted
# kernel does to a driver is no failure of the service: it is contained, and stays 422.
KINDS: Final[dict[type[Exception], tuple[HTTPStatus, str]]] = {
    Exception: (HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error"),
    StoreError: (_AWAY, "database_unavailable"),
    errors.InputError: (_UNUSABLE, "invalid_input"),
    errors.ProblemFileError: (_UNUSABLE, "invalid_problem"),
    errors.MachineFileError: (_UNUSABLE, "invalid_machine"),
    errors.UnknownMachineError: (HTTPStatus.NOT_FOUND, "unknown_machine"),
    errors.NDRangeError: (_UNUSABLE, "invalid_sizes"),
    errors.SignatureError: (_UNUSABLE, "arguments_do_not_fit"),
    errors.OverrunError: (_UNUSABLE, "leaves_a_buffer"),
    errors.KernelNotFoundError: (_UNUSABLE, "kernel_not_found"),
    errors.CompileError: (_UNUSABLE, "compile_error"),
    errors.PersistentKernelError: (_UNUSABLE, "persistent_kernel"),
    errors.EventTimesError: (_UNUSABLE, "wrong_event_times"),
    errors.MissingExtraError: (HTTPStatus.NOT_IMPLEMENTED, "missing_extra"),
    errors.UnknownDeviceError: (HTTPStatus.NOT_FOUND, "unknown_device"),
    errors.RecordingError: (_UNUSABLE, "invalid_recording"),
    errors.DeviceError: (_UNUSABLE, "device_cannot_answer"),
    errors.NoDeviceError: (_AWAY, "no_device"),
    errors.BrokenDeviceError: (_AWAY, "broken_device"),
    errors.DeviceLimitError: (_UNUSABLE, "device_limit"),
    errors.KernelRunError: (_UNUSABLE, "kernel_crashed"),
    errors.MeasurementError: (_UNUSABLE, "measurement_failed"),
    errors.EstimateTimeoutError: (_UNUSABLE, "kernel_timeout"),
    errors.NoAnswerYetError: (_AWAY, "no_answer_yet"),
}


def as_api_error(error: Exception) -> ApiError:
    """Tell callers what is wrong; what is inside the service is for its log."""
    if isinstance(error, ApiError):
        return error
    status, code = KINDS[next(one for one in type(error).__mro__ if one in KINDS)]
    message = redact_paths(str(error))
    if isinstance(error, StoreError):
        message = "the database does not answer as it should; try again in a moment"
    elif status == HTTPStatus.INTERNAL_SERVER_ERROR:
        message = "the service failed; please report it with the request id"
    # Nobody knows better when to ask again.
    return ApiError(status, code, message, retry_after_s=2 if status == _AWAY else None)


def message_of(error: Exception) -> str:
    return as_api_error(error).message


class ErrorResponse(JSONResponse):
    """Says no as RFC 9457 has it; `error` is what callers read before there was that."""

    media_type = "application/problem+json"

    def __init__(self, error: ApiError) -> None:
        content = {
            "type": f"urn:kernelcast:error:{error.code}",
            "title": error.code.replace("_", " ").capitalize(),
            "status": int(error.status),
            "detail": error.message,
            "error": error.describe(),
        }
        super().__init__(content, int(error.status))
        if error.retry_after_s is not None:
            self.headers["retry-after"] = str(error.retry_after_s)
        if error.status == HTTPStatus.UNAUTHORIZED:
            self.headers["www-authenticate"] = "Bearer"


def refuse_unknown(what: str, name: str) -> NoReturn:
    raise ApiError(HTTPStatus.NOT_FOUND, f"unknown_{what}", f"there is no {what} {name!r}")


def refuse_amount(what: str, count: int, most: int) -> NoReturn:
    raise ApiError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"too_many_{what}",
        f"{count} {what} in one request; send at most {most} at once",
    )


def refuse_text() -> NoReturn:
    raise ApiError(
        HTTPStatus.BAD_REQUEST,
        "invalid_text",
        "the request holds a NUL character or half of a surrogate pair; send text without them",
    )
