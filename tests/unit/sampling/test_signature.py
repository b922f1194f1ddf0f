import pytest

from kernelcast.records.arguments import (
    Access,
    BufferArgument,
    ElementType,
    Parameter,
    ScalarArgument,
)
from kernelcast.records.errors import SignatureError
from kernelcast.sampling.signature import check_arguments, infer_access

FLOATS = Parameter(index=0, name="a", type_name="float*", address_space="global", is_const=False)
VECTORS = Parameter(index=0, name="v", type_name="float4*", address_space="constant", is_const=True)


def buffer(element: str) -> BufferArgument:
    """Describe a buffer."""
    return BufferArgument(element=ElementType.parse(element), count=4)


def scalar(element: str) -> ScalarArgument:
    """Describe a scalar or vector of zeros."""
    parsed = ElementType.parse(element)
    return ScalarArgument(element=parsed, values=(0,) * parsed.lanes)


def test_unknown_parameters_are_not_checked() -> None:
    """Accepts anything where the driver gives no argument information."""
    unknown = Parameter(
        index=0, name="?", type_name="?", address_space="?", is_const=False, is_known=False
    )
    check_arguments("k", [unknown], [scalar("int8")])


@pytest.mark.parametrize(
    ("parameter", "declared", "expected"),
    [
        (FLOATS, None, Access.READ_WRITE), (VECTORS, None, Access.READ),
        (FLOATS, Access.READ, Access.READ), (FLOATS, Access.WRITE, Access.WRITE),
    ],
)  # fmt: skip
def test_const_means_read(parameter: Parameter, declared: Access | None, expected: Access) -> None:
    """Takes the declared access, else that of the type: const is only read."""
    assert infer_access(parameter, declared) is expected


@pytest.mark.parametrize("name", ["pipe int", "read_only pipe int"])
def test_a_pipe_is_refused_as_a_pipe(name: str) -> None:
    """Whatever is given for it."""
    pipe = Parameter(index=0, name="p", type_name=name, address_space="private", is_const=False)
    for given in (buffer("int32"), scalar("int32")):
        with pytest.raises(SignatureError, match="pipes cannot be given"):
            check_arguments("k", [pipe], [given])
