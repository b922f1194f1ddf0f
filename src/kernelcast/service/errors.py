"""How the service says no: problem details of RFC 9457, and a code that programs can tell apart.

``{"type", "title", "status", "detail", "error": {"code", "message", "detail"}}``
"""

import contextlib
import re
import sys
import tempfile
from dataclasses import KW_ONLY, dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NoReturn

from starlette.responses import JSONResponse

from kernelcast.launches.data_folder import data_folder
from kernelcast.records import errors
from kernelcast.records.errors import InputError
from kernelcast.records.estimates import Estimate
from kernelcast.records.kernel import Kernel
from kernelcast.service_state import StoreError
from kernelcast.workers import WROTE


@dataclass(eq=False)
class ApiError(Exception):
    """Is raised by the service itself; `as_api_error` makes one of what others raise."""

    status: int
    code: str
    message: str
    _: KW_ONLY
    detail: object = None
    retry_after_s: int | None = None

    def __str__(self) -> str:
        return self.message

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


def check_amount(what: str, count: int, most: int) -> None:
    if count > most:
        told = f"{count} {what} in one request; send at most {most} at once"
        raise ApiError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"too_many_{what}", told)


def refuse_text() -> NoReturn:
    raise ApiError(
        HTTPStatus.BAD_REQUEST,
        "invalid_text",
        "the request holds a NUL character or half of a surrogate pair; send text without them",
    )


_ROOTS: Final = (
    "/usr", "/opt", "/etc", "/var", "/lib", "/lib64", "/bin", "/proc", "/sys", "/dev", "/run",
    "/root", "/home", "/tmp", "/srv", "/mnt", "/media", "/boot", "/nix", "/snap",
)  # fmt: skip
_PATH_TAIL: Final = r"(?:/[^\s'\"`,;:()\[\]<>|]*)?(?![\w-])"
_SEVERITY = r"(?:(?:fatal )?error|warning|note|remark)"
_PLACE = r"(?P<file>[^:\n]*?):(?P<line>\d+):(?P<column>\d+):"
# Most compilers write the place first, PoCL the severity.
_DIAGNOSTIC = re.compile(rf"(?:{_SEVERITY}: )?{_PLACE}(?: {_SEVERITY}:)? (?P<message>.*)")
_QUOTED = re.compile(r"\s*\d+ \| ?(?P<text>.*)")
_MARKS = re.compile(r"[\s|~^;,(){}&*]*")
_SENTENCE = re.compile(
    r"(?:\d+ (?:warning|error)s?(?: and \d+ errors?)? generated\."
    r"|(?:Compilation|Linking|Device build) (?:started|done|failed)|Failed to build device program"
    r"|Error executing LLVM compilation action\.|Missing module\.|Error\(s\) while linking:"
    r"|Device [\w .@()-]+ failed to build the program|\.\.\. \d+ more lines)"
)
_ABSENT = re.compile(
    r"(?:Cannot find symbol (?P<pocl>\w+) in kernel library"
    r"|JIT session error: Symbols not found: \[ (?P<intel>\w+) \]"
    r"|\(file=input,[\w=,]+\): Unresolved external reference to \"(?P<rusticl>\w+)\"\.)"
)


def redact(text: str, kernel: Kernel) -> str:
    """Give what a caller may read of an error of its kernel."""
    said, wrote, _ = text.partition(WROTE)
    head, *log = said.splitlines() or [""]
    # Keep lines about the submitted source; count the others.
    told = [head]
    withheld = 0
    is_ours = False  # whether the last diagnostic was about the source
    lines = kernel.source.splitlines()
    quotable = {_bare(one) for one in lines} - {""}
    words = frozenset(re.findall(r"\w+", kernel.source))
    for line in filter(str.strip, log):
        found = _DIAGNOSTIC.fullmatch(line)
        if found is not None:
            is_ours = found["file"].strip() in {kernel.source_name, ""}
            is_ours = is_ours and 1 <= int(found["line"]) <= len(lines)
        absent, quoted = _ABSENT.fullmatch(line.strip()), _QUOTED.fullmatch(line)
        if found:
            is_told = is_ours
        elif absent:  # or a sentence without content
            is_told = absent[absent.lastindex or 0] in words
        else:
            is_told = _SENTENCE.fullmatch(line.strip()) is not None
        is_quotation = _bare(quoted["text"] if quoted else line) in quotable
        if is_told or (is_ours and (is_quotation or _MARKS.fullmatch(line))):
            told.append(line)
        else:
            withheld += 1
            is_ours = False
    if withheld:
        what = "1 line" if withheld == 1 else f"{withheld} lines"
        verb = "it does" if withheld == 1 else "they do"
        told.append(f"({what} withheld: {verb} not speak of the submitted source)")
    if wrote:
        told[-1] += "; what the process wrote is withheld"
    return redact_paths("\n".join(told))


def redact_estimate(estimate: Estimate, kernel: Kernel) -> Estimate:
    """Give an answer whose remarks are told as errors are."""
    explanation = estimate.explanation
    if explanation is not None:
        explanation = replace(
            explanation,
            missing={tier: redact(why, kernel) for tier, why in explanation.missing.items()},
            notes=tuple(redact(one, kernel) for one in explanation.notes),
        )
    warnings = tuple(redact(one, kernel) for one in estimate.warnings)
    return replace(estimate, warnings=warnings, explanation=explanation)


def redact_paths(text: str) -> str:
    if "/" not in text:
        return text
    # Give folders whose names say how this service is installed, longest first.
    own = {sys.prefix, sys.base_prefix, tempfile.gettempdir(), str(Path(__file__).parents[2])}
    for find in (Path.home, Path.cwd, data_folder):
        with contextlib.suppress(RuntimeError, OSError, InputError):
            own.add(str(find()))
    known = {one.rstrip("/") for one in own} | set(_ROOTS)
    folders = sorted((one for one in known if one.startswith("/")), key=len, reverse=True)
    names = "|".join(map(re.escape, folders))
    return re.sub(rf"(?<![\w/.:-])(?:{names}){_PATH_TAIL}", "(path withheld)", text)


def _bare(line: str) -> str:
    """Give a line without the blanks that compilers write in other ways."""
    return " ".join(line.split())
