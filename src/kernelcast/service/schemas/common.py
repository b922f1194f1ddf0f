"""Parts that several requests and answers share."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(min_length=1, max_length=200)]
"""A short text."""


class Strict(BaseModel):
    """A request: unknown fields are refused, so that a slip of the pen is told."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Open(BaseModel):
    """An answer, also of a record with its fields; later versions may add some."""

    model_config = ConfigDict(extra="allow", frozen=True, from_attributes=True)


class ErrorBody(Open):
    """What went wrong."""

    code: str = Field(description="For programs.")
    message: str = Field(description="For people.")
    detail: Any = Field(default=None, description="Plain values that depend on the code.")


class ErrorAnswer(Open):
    """The one shape of errors."""

    error: ErrorBody
