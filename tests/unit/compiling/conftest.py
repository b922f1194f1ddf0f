"""What holds for tests of compiled code: they need a compiler."""

import pytest

from kernelcast.compiling import find_compiler
from kernelcast.records.errors import MissingExtraError


@pytest.fixture(autouse=True, scope="session")
def compiler_is_there() -> None:
    """Skip where there is no clang, with what to install as the reason."""
    try:
        find_compiler()
    except MissingExtraError as error:
        pytest.skip(str(error))
