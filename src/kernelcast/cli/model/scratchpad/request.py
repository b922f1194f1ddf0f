"""What ``kernelcast model scratchpad`` is asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click

from kernelcast.analytic.scratchpad.kernel import ScratchpadKernel
from kernelcast.analytic.scratchpad.machine import ScratchpadMachine
from kernelcast.analytic.scratchpad.model import ScratchpadTerms, model_kernel
from kernelcast.analytic.scratchpad.what_if import (
    CpeSweep,
    DoubleBuffering,
    GranularityStep,
    buffer_doubly,
    list_cpe_counts,
    vary_cpes,
    vary_granularity,
)
from kernelcast.cli.ranges import read_range
from kernelcast.launches.modelling.scratchpad_file import (
    depends_on_cpes,
    is_scratchpad_file,
    read_scratchpad_kernel,
)
from kernelcast.launches.modelling.scratchpad_machines import find_scratchpad
from kernelcast.launches.modelling.scratchpad_opencl import derive_scratchpad_kernel
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.arithmetic import Number
from kernelcast.reports.drawing import check_plot


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchpadRequest:
    """The command line; fields are its options."""

    files: tuple[Path, ...]
    machine: str
    what_if: str | None
    active_cpes: int | None
    cpe_range: str | None
    average_ilp: float | None
    parameters: Mapping[str, Number]
    plot_file: Path | None
    as_json: bool
    processor: ScratchpadMachine = field(init=False)

    def __post_init__(self) -> None:
        if self.what_if is not None and len(self.files) > 1:
            msg = "--what-if takes one kernel at a time"
            raise click.UsageError(msg)
        if self.cpe_range is not None and self.what_if != "cpes":
            msg = "--cpes goes with --what-if cpes"
            raise click.UsageError(msg)
        if self.average_ilp is not None and any(is_scratchpad_file(one) for one in self.files):
            msg = "--ilp is for problem files; a scratchpad kernel file has the key average_ilp"
            raise click.UsageError(msg)
        check_plot(self.plot_file)
        object.__setattr__(self, "processor", find_scratchpad(self.machine))

    def model_all(self) -> list[ScratchpadTerms]:
        """Model each file."""
        return [
            model_kernel(self._read(one, self.active_cpes), self.processor) for one in self.files
        ]

    def vary_granularity(self) -> tuple[GranularityStep, ...]:
        """Divide the DMA requests of the file's kernel."""
        return vary_granularity(self._read(self.files[0], self.active_cpes), self.processor)

    def buffer_doubly(self) -> DoubleBuffering:
        """Ask what double buffering saves the file's kernel."""
        return buffer_doubly(self._read(self.files[0], self.active_cpes), self.processor)

    def vary_cpes(self) -> CpeSweep:
        """Model the file's kernel on several numbers of CPEs."""
        [path] = self.files
        given = self._read(path, self.active_cpes).active_cpes
        return vary_cpes(
            lambda count: self._read(path, count), given, self._list_counts(), self.processor
        )

    def changes_with_cpes(self) -> bool:
        """Tell whether a CPE's work depends on how many there are."""
        [path] = self.files
        return not is_scratchpad_file(path) or depends_on_cpes(path)

    def _read(self, path: Path, cpes: int | None) -> ScratchpadKernel:
        if is_scratchpad_file(path):
            return read_scratchpad_kernel(path, active_cpes=cpes, parameters=self.parameters)
        problem = read_problem(path, parameters=self.parameters)
        return derive_scratchpad_kernel(
            problem, self.processor, active_cpes=cpes, average_ilp=self.average_ilp
        )

    def _list_counts(self) -> list[int]:
        if self.cpe_range is None:
            return list_cpe_counts(self.processor)
        told = f"--cpes {self.cpe_range!r}"
        return list(read_range(self.cpe_range, told=told, example="8:64:8"))
