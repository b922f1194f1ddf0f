import pytest

from kernelcast.records.arguments import (
    Access,
    Argument,
    BufferArgument,
    ElementType,
    LocalArgument,
    ScalarArgument,
)
from kernelcast.records.errors import SignatureError
from kernelcast.sampling.signature import Parameter, check_arguments, infer_access

FLOATS = Parameter(index=0, name="a", type_name="float*", address_space="global", is_const=False)
VECTORS = Parameter(index=0, name="v", type_name="float4*", address_space="constant", is_const=True)
STRUCTS = Parameter(
    index=0, name="s", type_name="struct S*", address_space="global", is_const=False
)
COUNT = Parameter(index=0, name="n", type_name="uint", address_space="private", is_const=False)
STRUCT = Parameter(
    index=0, name="s", type_name="struct pair", address_space="private", is_const=False
)
NAMED = Parameter(index=0, name="x", type_name="real", address_space="private", is_const=False)
IMAGE = Parameter(index=0, name="i", type_name="image2d_t", address_space="global", is_const=True)
PICTURE = Parameter(index=0, name="p", type_name="image_t*", address_space="global", is_const=False)
LOCAL = Parameter(index=0, name="t", type_name="float*", address_space="local", is_const=False)


def buffer(element: str) -> BufferArgument:
    """Describe a buffer."""
    return BufferArgument(element=ElementType.parse(element), count=4)


def scalar(element: str) -> ScalarArgument:
    """Describe a scalar or vector of zeros."""
    parsed = ElementType.parse(element)
    return ScalarArgument(element=parsed, values=(0,) * parsed.lanes)


@pytest.mark.parametrize(
    ("parameter", "argument"),
    [
        (FLOATS, buffer("float32")), (FLOATS, buffer("float32x4")), (VECTORS, buffer("float32")),
        (VECTORS, buffer("float4")), (STRUCTS, buffer("uint8")), (COUNT, scalar("uint32")),
        (LOCAL, LocalArgument(bytes=64)), (STRUCT, scalar("uint8x8")), (NAMED, scalar("float32")),
        (PICTURE, buffer("uint8")),
    ],
)  # fmt: skip
def test_accepts_what_fits(parameter: Parameter, argument: Argument) -> None:
    """Accepts arguments of the parameter's kind and type; structs may be filled as bytes."""
    check_arguments("k", [parameter], [argument])


@pytest.mark.parametrize(
    ("parameter", "argument", "message"),
    [
        (FLOATS, buffer("int32"), r"\(global float\* a\): a buffer of int32 given; .* float32"),
        (FLOATS, scalar("float32"), "a scalar given; give a buffer"),
        (FLOATS, LocalArgument(bytes=64), "local memory given; give a buffer"),
        (COUNT, scalar("int32"), r"0 \(uint n\): int32 given; give uint32"),
        (COUNT, scalar("uint32x2"), "uint32x2 given; give uint32"),
        (COUNT, buffer("uint32"), r"a buffer given; give a scalar \(uint32\)"),
        (LOCAL, buffer("float32"), "a buffer given; give a size of local memory"),
        (LOCAL, scalar("float32"), "a scalar given; give a size of local memory"),
        (STRUCT, scalar("float32"), "float32 given for a structure; give its bytes"),
        (IMAGE, buffer("float32"), "a buffer given; give a image2d_t"),
    ],
)
def test_refuses_what_does_not_fit(parameter: Parameter, argument: Argument, message: str) -> None:
    """Refuses an argument of another kind or type, showing parameter, given and wanted."""
    with pytest.raises(SignatureError, match=message):
        check_arguments("k", [parameter], [argument])


@pytest.mark.parametrize("given", [0, 1, 3])
def test_refuses_another_count(given: int) -> None:
    """Refuses another number of arguments, showing both numbers and the signature."""
    with pytest.raises(SignatureError, match=rf"{given} arguments given, 2 expected: .*float\* a"):
        check_arguments("k", [FLOATS, COUNT], [buffer("float32")] * given)


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
