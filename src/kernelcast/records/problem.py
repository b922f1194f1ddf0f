"""One launch to be answered for: kernel, index space, arguments."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from kernelcast.records.arguments import Argument, BufferArgument
from kernelcast.records.device import DeviceDescription
from kernelcast.records.kernel import Kernel
from kernelcast.records.launch_identity import (
    DeviceIdentity,
    KernelIdentity,
    LaunchIdentity,
    digest_arguments,
)
from kernelcast.records.ndrange import NDRange


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
