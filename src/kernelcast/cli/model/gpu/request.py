"""What ``kernelcast model gpu`` was asked, checked before anything is computed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from kernelcast.cli.ranges import read_range
from kernelcast.expressions.accesses import AccessKind, MemoryAccess
from kernelcast.features.written_accesses.accesses import read_access
from kernelcast.features.written_accesses.arrays import read_array
from kernelcast.features.written_accesses.kernel import WrittenKernel
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.access_file import WrittenLaunch
from kernelcast.launches.modelling.folding import parse_fold
from kernelcast.launches.modelling.hit_rate_file import read_hit_rates_file
from kernelcast.launches.modelling.sources import (
    Folds,
    LaunchSource,
    read_launch_source,
    use_written,
)
from kernelcast.records.arithmetic import Number
from kernelcast.records.errors import InputError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.ndrange import NDRange
from kernelcast.reports.drawing import check_plot

_SWEEP = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*=(?P<range>[^=]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeSweep:
    """A parameter and the values it takes."""

    name: str
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRequest:
    """The command line of ``kernelcast model gpu``; fields are its options."""

    file: Path | None
    machines: tuple[str, ...]
    local_sizes: tuple[str, ...]
    folds: tuple[str, ...]
    sweeps_local: bool
    sweeps_fold: bool
    sweep_size: str | None
    measured_file: Path | None
    device_id: str | None
    parameters: Mapping[str, Number]
    arrays: tuple[str, ...]
    loads: tuple[str, ...]
    stores: tuple[str, ...]
    atomics: tuple[str, ...]
    scalars: Mapping[str, Number]
    operations: Mapping[str, Number]
    global_size: str | None
    global_offset: str | None
    registers: int | None
    hit_rates: str | None
    shown: int
    as_json: bool
    plot_file: Path | None

    def __post_init__(self) -> None:
        written = bool(self.arrays or self.loads or self.stores or self.atomics)
        if written == (self.file is not None):
            msg = "give a file (P.yaml), or accesses as text (--array, --access, --global)"
            raise click.UsageError(msg)
        if written and self.global_size is None:
            msg = "accesses as text need --global, the sizes of the index space"
            raise click.UsageError(msg)
        if self.sweep_size is not None and (self.sweeps_local or self.sweeps_fold or written):
            msg = "--sweep-size sweeps a parameter of a file, and nothing else at the same time"
            raise click.UsageError(msg)
        if len(self.local_sizes) > 1 and self.sweep_size is None:
            msg = "several --local are for --sweep-size; --sweep-local tries all local sizes"
            raise click.UsageError(msg)
        if self.measured_file is not None and (
            self.sweeps_local or self.sweeps_fold or self.sweep_size or len(self.machines) > 1
        ):
            msg = "--measured compares with the launches of one machine; it cannot be swept"
            raise click.UsageError(msg)
        check_plot(self.plot_file)

    def find_machines(self) -> list[MachineDescription]:
        """Read the machine descriptions."""
        return [find_machine(one) for one in self.machines]

    def own_local_sizes(self) -> list[tuple[int, ...] | None]:
        """Give the local sizes that were asked for; None stands for the file's own."""
        return [parse_sizes(one, "--local") for one in self.local_sizes] or [None]

    def own_folds(self) -> Folds | None:
        """Give the folding that was asked for; None for the file's own."""
        return tuple(parse_fold(one) for one in self.folds) or None

    def sizes(self) -> SizeSweep | None:
        """Give the sweep over a parameter, if one is asked for."""
        return None if self.sweep_size is None else parse_sweep(self.sweep_size)

    def source(self, extra: Mapping[str, Number] | None = None) -> LaunchSource:
        """Read the file, or what was typed."""
        if self.file is None:
            source = use_written(self._read_typed())
        else:
            source = read_launch_source(self.file, parameters={**self.parameters, **(extra or {})})
        folds = self.own_folds()
        if folds is not None:
            source.folds = folds
        if self.registers is not None:
            source.registers = self.registers
        if self.hit_rates is not None:
            source.hit_rates = read_hit_rates_file(self.hit_rates)
        return source

    def _read_typed(self) -> WrittenLaunch:
        scalars = {name: _whole(name, value) for name, value in self.scalars.items()}
        arrays = {}
        for text in self.arrays:
            array = read_array(text, tuple(scalars))
            if array.name in arrays:
                msg = f"array {array.name!r} is declared twice; keep one declaration"
                raise InputError(msg)
            arrays[array.name] = array
        accesses: list[MemoryAccess] = []
        for kind, texts in (
            (AccessKind.LOAD, self.loads),
            (AccessKind.STORE, self.stores),
            (AccessKind.ATOMIC, self.atomics),
        ):
            for text in texts:
                site, names = len(accesses), tuple(scalars)
                accesses.append(read_access(text, arrays, kind=kind, scalars=names, site=site))
        kernel = WrittenKernel(
            name="typed accesses",
            arrays=tuple(arrays.values()),
            accesses=tuple(accesses),
            scalars=scalars,
            operations={name: float(count) for name, count in self.operations.items()},
        )
        sizes = parse_sizes(self.global_size or "", "--global")
        offset = parse_sizes(self.global_offset, "--offset") if self.global_offset else ()
        return WrittenLaunch(
            kernel=kernel, ndrange=NDRange(global_size=sizes, global_offset=offset)
        )


def parse_sizes(text: str, option: str) -> tuple[int, ...]:
    """Read one to three whole numbers, joined by commas or by ``x``.

    Examples
    --------
    >>> parse_sizes("32,4,8", "--local"), parse_sizes("640x512", "--global")
    ((32, 4, 8), (640, 512))
    """
    parts = text.replace("x", ",").split(",")
    if not 1 <= len(parts) <= 3 or not all(one.strip().isdecimal() for one in parts):
        msg = f"{option} {text!r}: expected one to three whole numbers, such as 32,4,8"
        raise InputError(msg)
    return tuple(int(one) for one in parts)


def parse_sweep(text: str) -> SizeSweep:
    """Read ``NAME=FIRST:LAST:STEP``; the last value belongs to it.

    Examples
    --------
    >>> parse_sweep("NX=300:800:250").values
    (300, 550, 800)
    """
    match = _SWEEP.fullmatch(text)
    if match is None or ":" not in match["range"]:
        msg = f"--sweep-size {text!r}: expected NAME=FIRST:LAST:STEP, such as NX=300:800:20"
        raise InputError(msg)
    values = read_range(match["range"], told=f"--sweep-size {text!r}", example="300:800:20")
    return SizeSweep(name=match["name"], values=values)


def _whole(name: str, value: Number) -> int:
    if isinstance(value, float) and not value.is_integer():
        msg = f"{name} is {value}; expected a whole number"
        raise InputError(msg)
    return int(value)
