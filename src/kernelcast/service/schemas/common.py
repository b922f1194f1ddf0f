"""Parts that several requests and answers share."""

import re
from collections.abc import Callable
from dataclasses import fields
from http import HTTPStatus
from typing import Annotated, Any, NoReturn, TypeVar, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from kernelcast.service.errors import ApiError

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


def refuse_cursor(given: str) -> NoReturn:
    """Refuse what no list has given as `next`."""
    raise ApiError(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "invalid_request",
        f"next: {given[:40]!r} was not given by an answer of this list; leave it out to begin",
    )


def read_number(given: str) -> int:
    """Read a number of a cursor, which a database can hold."""
    if not re.fullmatch(r"-?[0-9]{1,19}", given) or abs(int(given)) >= 1 << 63:
        refuse_cursor(given)
    return int(given)
