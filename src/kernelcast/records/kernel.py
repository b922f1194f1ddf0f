"""A kernel: source, name and build options."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from kernelcast.records.dialect import Dialect
from kernelcast.records.errors import InputError

_INCLUDE = re.compile(r"#\s*include\b|__has_include")
_INCLUDING_OPTIONS = ("-I", "-include")


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """An OpenCL C kernel as text.

    Raises
    ------
    InputError
        If the name or the source is empty, or a text cannot be written as UTF-8.

    Examples
    --------
    >>> Kernel(name="k", source="kernel void k() {}").digest[:8]
    'a3f7f507'
    """

    name: str
    """Name of the kernel function."""
    source: str
    """OpenCL C source that holds it."""
    build_options: tuple[str, ...] = ()
    """Options for the device's compiler, one per element."""
    source_name: str = "<source>"
    """What error messages call the source: a file name, or ``<source>``."""
    dialect: Dialect | None = None
    """What the device defines that is to compile it; not part of its identity. None: no device is
    chosen yet."""

    def __post_init__(self) -> None:
        if not self.name:
            msg = "kernel: the name is empty; give the name of a kernel function of the source"
            raise InputError(msg)
        if not self.source.strip():
            raise InputError(f"kernel {self.name!r}: the source is empty; give OpenCL C text")
        for what, text in (
            ("name", self.name), ("source", self.source),
            *(("build option", option) for option in self.build_options),
        ):  # fmt: skip
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise InputError(
                    f"kernel: the {what} holds U+{ord(text[error.start]):04X}, half of a "
                    "character; give text that UTF-8 can hold"
                ) from error

    @property
    def includes_files(self) -> bool:
        """Whether files decide what it is that its digest does not hold."""
        return includes_files(self.source, self.build_options)

    @cached_property
    def digest(self) -> str:
        """Hex SHA-256 of name, source and options: the identity of the kernel."""
        parts = (self.name, self.source, *self.build_options)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def includes_files(source: str, build_options: Sequence[str]) -> bool:
    """Tell whether what a source becomes is decided by files beside it."""
    return bool(_INCLUDE.search(source)) or any(
        build_option.startswith(_INCLUDING_OPTIONS) for build_option in build_options
    )
