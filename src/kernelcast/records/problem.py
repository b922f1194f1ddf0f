"""One launch to be answered for, and what makes two launches the same."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

from kernelcast.records.arguments import (
    Argument,
    BufferArgument,
    HeldBuffer,
    ImageArgument,
    Init,
    LocalArgument,
    SamplerArgument,
    ScalarArgument,
)
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange

_DIGEST = re.compile(r"[0-9a-f]{64}")
_encode = json.JSONEncoder(separators=(",", ":")).encode
_RANDOM = frozenset({Init.UNIFORM, Init.NORMAL, Init.PERMUTATION})


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    name: str
    kernel: Kernel
    ndrange: NDRange
    arguments: tuple[Argument, ...]

    def on(self, device: DeviceDescription) -> Self:
        """Return the problem whose source is read as the device's compiler reads it."""
        if device.dialect is None or self.kernel.dialect == device.dialect:
            return self
        return replace(self, kernel=replace(self.kernel, dialect=device.dialect))

    @property
    def buffer_bytes(self) -> int:
        return sum(a.bytes for a in self.arguments if isinstance(a, BufferArgument))


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelIdentity:
    name: str
    digest: str
    """That of `Kernel`; of imported kernels without source a hash of their names."""
    application: str = ""
    suite: str = ""
    """Collection the application belongs to; empty if it is not known."""

    def __post_init__(self) -> None:
        if not self.name:
            msg = "observation: the kernel has no name; give that of the kernel function"
            raise InputError(msg)
        _check_digest("kernel", self.digest)

    @property
    def label(self) -> str:
        """Suite, application and name: equal for all builds of one kernel."""
        return "/".join(one for one in (self.suite, self.application, self.name) if one)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceIdentity:
    id: str
    name: str = ""
    platform: str = ""
    driver: str = ""

    def __post_init__(self) -> None:
        if not self.id:
            raise InputError("observation: the device has no id; give a stable one")


@dataclass(frozen=True, kw_only=True)
class LaunchIdentity:
    """A launch of a kernel on a device: what an observation is an observation of."""

    kernel: KernelIdentity
    device: DeviceIdentity
    ndrange: NDRange | None
    """Index space; None where a foreign source does not tell it."""
    arguments_digest: str
    parameters: Mapping[str, int | float | str] = field(default_factory=dict)
    """What a problem file or foreign source calls the sizes; no part of the identity."""

    def __post_init__(self) -> None:
        _check_digest("arguments", self.arguments_digest)

    @cached_property
    def key(self) -> str:
        """Hex SHA-256 of the identity: equal for exact repeats of a launch, and for no others."""
        kernel, others = self._list_parts()
        return digest_text(_encode([*kernel, self.device.id, self.device.driver, *others]))

    @property
    def problem_key(self) -> str:
        """The same without the device: equal for the same launch on any device."""
        kernel, others = self._list_parts()
        return digest_text(_encode([*kernel, *others]))

    def _list_parts(self) -> tuple[list[str], list[object]]:
        """List what tells the kernel, and what else tells a launch on any device."""
        ndrange = self.ndrange
        sizes = None if ndrange is None else [
            ndrange.global_size, ndrange.local_size, ndrange.global_offset,
        ]  # fmt: skip
        return [self.kernel.digest, self.kernel.name], [sizes, self.arguments_digest]

    @property
    def work_group_count(self) -> int | None:
        if self.ndrange is None or self.ndrange.local_size is None:
            return None
        return self.ndrange.work_group_count


def identify_launch(
    problem: Problem,
    device: DeviceDescription | DeviceIdentity,
    *,
    seed: int,
    parameters: Mapping[str, int | float | str] | None = None,
    arguments_digest: str = "",
) -> LaunchIdentity:
    return LaunchIdentity(
        kernel=KernelIdentity(name=problem.kernel.name, digest=problem.kernel.digest),
        device=DeviceIdentity(
            id=device.id, name=device.name, platform=device.platform, driver=device.driver
        ),
        ndrange=problem.ndrange,
        arguments_digest=arguments_digest or digest_arguments(problem.arguments, seed=seed),
        parameters=dict(parameters or {}),
    )


def digest_text(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def digest_arguments(arguments: Sequence[Argument], *, seed: int) -> str:
    """Hash what a kernel is called with: types, sizes, values and recipes of contents."""
    return digest_text(_encode([_describe(argument, seed) for argument in arguments]))


def _describe(argument: Argument, seed: int) -> list[object]:
    if isinstance(argument, LocalArgument):
        return ["local", argument.bytes]
    if isinstance(argument, ScalarArgument):
        return ["scalar", str(argument.element), list(argument.values)]
    if isinstance(argument, SamplerArgument):
        return ["sampler", argument.filter, argument.address, argument.normalized]
    if isinstance(argument, ImageArgument):
        form = [*argument.size], argument.layers, argument.order, argument.channel
        return ["image", *form, *_describe_content(argument, seed)]
    return ["buffer", str(argument.element), argument.count, *_describe_content(argument, seed)]


def _describe_content(argument: BufferArgument, seed: int) -> list[object]:
    if isinstance(argument, HeldBuffer):
        return ["held", argument.digest, *argument.overlaps]
    if argument.data is not None:
        return [argument.init.value, hashlib.sha256(argument.data).hexdigest()]
    if argument.init is Init.FILE and argument.path is not None:
        try:
            with argument.path.open("rb") as file:
                return [argument.init.value, hashlib.file_digest(file, "sha256").hexdigest()]
        except OSError as error:
            msg = f"{argument.path}: the buffer's file cannot be read: {error.strerror or error}"
            raise InputError(msg) from error
    content: list[object] = [argument.init.value]
    if argument.init is Init.UNIFORM:
        content += argument.uniform_range
    return [*content, seed] if argument.init in _RANDOM else content


def _check_digest(what: str, digest: str) -> None:
    if not _DIGEST.fullmatch(digest):
        msg = f"observation: the {what} digest is {digest!r}; expected 64 letters of 0-9 and a-f"
        raise InputError(msg)
