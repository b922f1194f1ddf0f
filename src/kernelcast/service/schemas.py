"""What requests and answers look like, where several routes or a page share it."""

from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Self, TypeVar, cast, get_type_hints

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    create_model,
    model_validator,
)

Text = Annotated[str, Field(min_length=1, max_length=200)]
"""A short text."""


class Strict(BaseModel):
    """A request: unknown fields and other types are refused, so that a slip of the pen is told."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


class Open(BaseModel):
    """An answer, also of a record with its fields; later versions may add some."""

    model_config = ConfigDict(extra="allow", frozen=True, from_attributes=True)


M = TypeVar("M", bound=BaseModel)


def of_record(
    record: type, *, without: frozenset[str] = frozenset()
) -> Callable[[type[M]], type[M]]:
    """Have an answer hold the fields of a record; what is said of one in its class stays so."""

    def add(model: type[M]) -> type[M]:
        hints = get_type_hints(record)
        names = (one.name for one in fields(record) if one.name not in without)
        added: dict[str, Any] = {name: (hints[name], ...) for name in names}
        said = {name: (one.annotation, one) for name, one in model.model_fields.items()}
        made: Any = create_model(
            model.__name__, __base__=Open, __doc__=model.__doc__, __module__=model.__module__,
            **added | said,
        )  # fmt: skip
        return cast("type[M]", made)

    return add


class ErrorBody(Open):
    """What went wrong."""

    code: str = Field(description="For programs.")
    message: str = Field(description="For people.")
    detail: Any = Field(default=None, description="Plain values that depend on the code.")


class ErrorAnswer(Open):
    """Problem details of RFC 9457; `error` holds them as programs read them."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "type": "urn:kernelcast:error:unknown_job",
                "title": "Unknown job",
                "status": 404,
                "detail": "there is no job '17'",
                "error": {
                    "code": "unknown_job", "message": "there is no job '17'", "detail": None,
                },
            }
        }
    )  # fmt: skip

    type: str = Field(description="urn:kernelcast:error: and the code.")
    title: str = Field(description="The code in words.")
    status: int = Field(description="Status of the answer.")
    detail: str = Field(description="As `error.message`.")
    error: ErrorBody


Number = int | float | str
"""A number, or arithmetic over parameters such as ``{N} * 2``."""
Sizes = Annotated[list[Number], Field(min_length=1, max_length=3)] | Number
_DIGEST = r"^[0-9a-f]{64}$"
EXAMPLE: Final[dict[str, Any]] = {
    "code": "kernel void scale(global float *a) { a[get_global_id(0)] *= 2.0f; }",
    "kernel": "scale",
    "global_size": [16777216],
    "local_size": [256],
    "args": [{"buffer": "float32", "count": 16777216, "init": "uniform"}],
}


class ArgumentIn(Strict):
    """An argument: as an entry of a problem file's args."""

    buffer: str | dict[str, str] | None = Field(
        default=None, description="Element type, such as float32x4; fields of a structure; NULL."
    )
    count: Number | None = Field(default=None, description="Elements of the buffer.")
    init: str | dict[str, str] | None = Field(
        default=None,
        description="zeros, ones, uniform, normal, arange, permutation; or the values' bytes as "
        '{"base64": TEXT}. Files are refused.',
    )
    low: Number | None = None
    high: Number | None = None
    access: str | None = Field(default=None, description="read, write or read_write.")
    scalar: str | None = Field(default=None, description="Type of the scalar.")
    struct: dict[str, str] | None = Field(default=None, description="Types of its fields.")
    value: Number | list[Number] | dict[str, Number | list[Number]] | None = None
    local: Number | None = Field(default=None, description="Bytes of local memory.")
    image: str | None = Field(default=None, description="Channels of a pixel, such as rgba.")
    channel: str | None = Field(default=None, description="Such as unorm_int8.")
    size: Sizes | None = Field(default=None, description="Pixels along each axis.")
    layers: Number | None = Field(default=None, description="Of an array of images.")
    sampler: str | None = Field(default=None, description="nearest or linear.")
    address: str | None = Field(default=None, description="clamp_to_edge and the like.")
    normalized: bool | None = Field(default=None, description="Whether coordinates are 0 to 1.")


class ProblemIn(Strict):
    """A problem file as JSON; the source is given as text."""

    model_config = ConfigDict(json_schema_extra={"example": EXAMPLE})

    name: Text | None = Field(default=None, description="What answers call it.")
    code: str = Field(description="OpenCL C.")
    kernel: str = Field(description="Name of the kernel function.")
    build_options: list[str] = Field(
        default=[], description="-DNAME=VALUE, -cl-..., -w and -Werror; others are refused."
    )
    global_size: Sizes
    local_size: Sizes | None = Field(default=None, description="null lets the device choose.")
    global_offset: Sizes | None = None
    parameters: dict[str, Number | list[Number]] = Field(default={})
    args: list[ArgumentIn] = Field(max_length=256)

    @model_validator(mode="before")
    @classmethod
    def refuse_files(cls, content: Any) -> Any:  # noqa: ANN401 - whatever was sent
        """Say what to do instead of naming a file."""
        if isinstance(content, dict) and "source" in content:
            msg = "`source` names a file, and this service reads none: give the text as `code`"
            raise ValueError(msg)
        return content

    def to_content(self) -> dict[str, Any]:
        """Give the plain values that were sent."""
        return self.model_dump(exclude_unset=True)


class ProblemRef(Strict):
    """A problem, or the digest of one that was sent before."""

    problem: ProblemIn | None = None
    problem_digest: Annotated[str, Field(pattern=_DIGEST)] | None = None

    @model_validator(mode="after")
    def check_choices(self) -> Self:
        """Refuse both and neither."""
        if (self.problem is None) == (self.problem_digest is None):
            raise ValueError("give either `problem` or `problem_digest`")
        return self


def _check_moment(moment: datetime) -> datetime:
    """Refuse moments at which nothing can have been measured."""
    first = datetime(2008, 12, 8, tzinfo=UTC)  # OpenCL 1.0
    if not first <= moment <= datetime.now(UTC) + timedelta(days=1):  # clocks differ
        msg = f"{moment.isoformat()} is before OpenCL was there or in the future; give when it ran"
        raise ValueError(msg)
    return moment


Seconds = Annotated[float, Field(gt=0, lt=1e9)]
Moment = Annotated[AwareDatetime, Field(strict=False), AfterValidator(_check_moment)]


class DeviceIn(Strict):
    """A device of another host."""

    id: Text
    name: str = Field(default="", max_length=200)
    platform: str = Field(default="", max_length=200)
    driver: str = Field(default="", max_length=200)


class Times(Strict):
    """How long a launch has taken, and when."""

    seconds: Seconds | None = Field(default=None, description="Time of the whole kernel.")
    # A default that can change would be copied for every observation: an eighth of a batch's time.
    durations_seconds: tuple[Seconds, ...] = Field(
        default=(),
        max_length=1000,
        strict=False,
        description="Of several runs, instead of `seconds`.",
    )
    measured_at: Moment | None = None

    @property
    def durations_s(self) -> tuple[float, ...]:
        """Each run, in seconds; empty where no time is given."""
        return self.durations_seconds if self.seconds is None else (self.seconds,)


class ObservationIn(ProblemRef, Times):
    """How long a launch has really taken."""

    key: Text = Field(
        description="Your name of this measurement: of one launch, each key counts once."
    )
    device: Text | DeviceIn = Field(description="Id of a device of this host, or a whole device.")
    local_size: list[Annotated[int, Field(ge=1)]] | None = Field(
        default=None,
        min_length=1,
        max_length=3,
        description="What the device chose, where the problem does not say it.",
    )
    seed: int = Field(default=0, ge=0, lt=2**32)
    is_first_launch: bool = Field(default=False, description="Compilation may be in the time.")
    is_contaminated: bool = Field(default=False, description="Other work ran beside it.")

    @model_validator(mode="after")
    def check_times(self) -> Self:
        """Refuse two times and none."""
        if (self.seconds is None) == (not self.durations_seconds):
            raise ValueError("give either `seconds` or `durations_seconds`")
        return self


class DoubtOut(Open):
    """An observation that is kept, and not believed until it repeats."""

    key: str = Field(description="Your name of the measurement.")
    observation: str = Field(description="Its key in the store.")
    reason: str = Field(description="What it contradicts.")


class ObservationsOut(Open):
    """What became of a batch; it is stored when this answer comes."""

    added: int = Field(description="New ones.")
    known: int = Field(description="Those whose key was there; they stay as they were.")
    doubted: list[DoubtOut] = Field(
        default=[], description="Those that contradict samples, physics or other observations."
    )
