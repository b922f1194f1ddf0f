"""Problems as callers send them."""

from typing import Annotated, Any, Final, Self

from pydantic import ConfigDict, Field, model_validator

from kernelcast.service.schemas.common import Open, Strict, Text

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


class ProblemOut(Open):
    """A problem that is kept."""

    problem_digest: str = Field(description="To be sent instead of the problem.")
    name: str
    kernel: str
    kernel_digest: str
    buffer_bytes: int
