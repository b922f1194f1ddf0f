from dataclasses import replace

import pytest

from kernelcast.records.arguments import (
    Access,
    Parameter,
)
from kernelcast.records.errors import SignatureError
from kernelcast.sampling.signature import check_arguments, infer_access
from support.problems import buffer_of, number_of

FLOATS = Parameter(index=0, name="a", type_name="float*", address_space="global", is_const=False)
VECTORS = Parameter(index=0, name="v", type_name="float4*", address_space="constant", is_const=True)


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
    """Whatever is given for it, where the driver tells of arguments."""
    pipe = Parameter(index=0, name="p", type_name=name, address_space="private", is_const=False)
    check_arguments("k", [replace(FLOATS, is_known=False)], [number_of(0, "int8")])
    for given in (buffer_of("int32"), number_of(0)):
        with pytest.raises(SignatureError, match="pipes cannot be given"):
            check_arguments("k", [pipe], [given])
