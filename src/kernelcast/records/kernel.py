"""A kernel: source, name and build options, and the OpenCL C that a device's compiler reads."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from kernelcast.records.errors import InputError

_INCLUDE = re.compile(r"#\s*include\b|__has_include")
_INCLUDING_OPTIONS = ("-I", "-include")
_VERSION = re.compile(r"(?:OpenCL (?:C )?)?(\d)\.(\d)")
_NAME = re.compile(r"[A-Za-z_]\w*")
# Of any device of the last fifteen years but for half precision, which GPUs that have a compiler
# here have.
_USUAL_EXTENSIONS = frozenset({
    "cl_khr_3d_image_writes", "cl_khr_byte_addressable_store", "cl_khr_fp16", "cl_khr_fp64",
    "cl_khr_global_int32_base_atomics", "cl_khr_global_int32_extended_atomics",
    "cl_khr_int64_base_atomics", "cl_khr_int64_extended_atomics",
    "cl_khr_local_int32_base_atomics", "cl_khr_local_int32_extended_atomics",
})  # fmt: skip
_USUAL_FEATURES = frozenset({
    "__opencl_c_3d_image_writes", "__opencl_c_atomic_order_acq_rel",
    "__opencl_c_atomic_order_seq_cst", "__opencl_c_atomic_scope_all_devices",
    "__opencl_c_atomic_scope_device", "__opencl_c_fp64", "__opencl_c_generic_address_space",
    "__opencl_c_images", "__opencl_c_int64", "__opencl_c_program_scope_global_variables",
    "__opencl_c_read_write_images", "__opencl_c_work_group_collective_functions",
})  # fmt: skip
# OpenCL C 3.0 asks that an extension and its feature agree.
_ALIKE = {
    "cl_khr_fp64": "__opencl_c_fp64",
    "cl_khr_3d_image_writes": "__opencl_c_3d_image_writes",
    "cl_khr_subgroups": "__opencl_c_subgroups",
}
# OpenCL C 2.0 and 3.0 are what a device may lack; all can compile what came before.
_LANGUAGES = {(1, 0): "CL1.0", (1, 1): "CL1.1", (1, 2): "CL1.2", (2, 0): "CL2.0", (3, 0): "CL3.0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """OpenCL C as one device's compiler reads it; the default is a GPU of today."""

    version: tuple[int, int] = (3, 0)
    extensions: frozenset[str] = _USUAL_EXTENSIONS
    """Names such as ``cl_khr_fp16``; each is a macro."""
    features: frozenset[str] = _USUAL_FEATURES
    """Optional features of OpenCL C 3.0, such as ``__opencl_c_images``; macros there."""
    has_images: bool = True
    is_little_endian: bool = True

    def __post_init__(self) -> None:
        for name in self.extensions | self.features:
            if not _NAME.fullmatch(name):
                raise InputError(f"dialect: {name!r} is no name of an extension or a feature")

    @classmethod
    def from_device(
        cls, version: str, extensions: str | Iterable[str], *, features: Iterable[str] = (),
        has_fp64: bool | None = None, has_images: bool = True, is_little_endian: bool = True,
    ) -> Self:  # fmt: skip
        words = extensions.split() if isinstance(extensions, str) else extensions
        names = {word for word in words if _NAME.fullmatch(word)}
        if has_fp64:
            names.add("cl_khr_fp64")
        match = _VERSION.match(version)
        return cls(
            version=(int(match[1]), int(match[2])) if match else (1, 2),
            extensions=frozenset(names), features=frozenset(features), has_images=has_images,
            is_little_endian=is_little_endian,
        )  # fmt: skip

    @property
    def language(self) -> str:
        """What a source without -cl-std is read as: 1.2, or less where the device has less."""
        return _LANGUAGES[min((1, 2), max((1, 0), self.version))]

    def list_flags(self, language: str) -> list[str]:
        names = {*self.extensions}
        if language.startswith("CL3"):
            names |= self.features - {*_ALIKE.values()}
            names |= {feature for name, feature in _ALIKE.items() if name in names}
        number = self.version[0] * 100 + self.version[1] * 10
        macros = [f"__OPENCL_VERSION__={number}", *(f"{name}=1" for name in sorted(names))]
        if self.has_images:
            macros.append("__IMAGE_SUPPORT__=1")
        if self.is_little_endian:
            macros.append("__ENDIAN_LITTLE__=1")
        return [
            "-cl-ext=" + ",".join(("-all", *(f"+{name}" for name in sorted(names)))),
            "-U__ENDIAN_LITTLE__", "-U__IMAGE_SUPPORT__", *(f"-D{macro}" for macro in macros),
        ]  # fmt: skip


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
