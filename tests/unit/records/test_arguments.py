import numpy as np
import pytest
from hypothesis import given

from kernelcast.records.arguments import ElementType, ScalarArgument, make_scalar
from kernelcast.records.errors import InputError
from support import strategies


@given(element=strategies.element_types())
def test_element_types_survive_their_text(element: ElementType) -> None:
    """Reads back every element type from what it prints."""
    assert ElementType.parse(str(element)) == element


@pytest.mark.parametrize(
    ("text", "base", "lanes", "size_bytes"),
    [
        ("float", "float32", 1, 4), ("double8", "float64", 8, 64), ("uchar", "uint8", 1, 1),
        ("half4", "float16", 4, 8), ("ulong2", "uint64", 2, 16), ("int3", "int32", 3, 16),
        ("unsigned int", "uint32", 1, 4), ("size_t", "uint64", 1, 8),
    ],
)  # fmt: skip
def test_reads_opencl_names(text: str, base: str, lanes: int, size_bytes: int) -> None:
    """Reads OpenCL C's type names with the sizes its standard gives, three lanes stored as four."""
    element = ElementType.from_opencl(text)
    assert element == ElementType(base, lanes)
    assert element.bytes == size_bytes


@given(argument=strategies.scalar_arguments())
def test_scalars_have_the_size_of_their_type(argument: ScalarArgument) -> None:
    """Makes a scalar or vector of exactly the bytes that a kernel expects."""
    value = make_scalar(argument)
    assert value.nbytes == argument.element.bytes
    assert np.array_equal(
        np.atleast_1d(value)[: argument.element.lanes],
        np.array(argument.values, dtype=argument.element.dtype),
    )


@pytest.mark.parametrize(("base", "value"), [("uint8", 256), ("int8", -129), ("uint32", -1)])
def test_complains_about_values_out_of_range(base: str, value: int) -> None:
    """Says which value does not fit its type and the type's range."""
    with pytest.raises(InputError, match=rf"value {value} does not fit {base} \("):
        ScalarArgument(element=ElementType(base), values=(value,))
