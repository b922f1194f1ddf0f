"""What ``kernelcast model cpu`` was asked, checked before anything is computed."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import click

from kernelcast.analytic.cpu.in_core import InCoreProvider, InCoreTerms
from kernelcast.analytic.cpu.machine import CpuMachine, read_machine
from kernelcast.analytic.cpu.osaca_provider import OsacaProvider
from kernelcast.analytic.cpu.units import Unit, read_unit
from kernelcast.cli.ranges import read_range
from kernelcast.expressions.loop_nest import LoopNest
from kernelcast.launches.machines import find_machine, list_machines
from kernelcast.launches.modelling.compiled_loops import (
    CompilerChoice,
    choose_architecture,
    compile_loop,
)
from kernelcast.launches.modelling.cpu_loops import GivenTerms, LoopModel, read_loop_file
from kernelcast.records.arithmetic import ArithmeticProblem, evaluate
from kernelcast.records.errors import InputError
from kernelcast.records.machine import MachineDescription
from kernelcast.reports.drawing import check_plot

_YAML = frozenset({".yaml", ".yml"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Values of constants, one of them perhaps swept."""

    fixed: Mapping[str, int]
    """Constants with one value."""
    name: str = ""
    """The constant that is swept; empty for none."""
    values: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CpuRequest:
    """The command line of ``kernelcast model cpu``; fields are its options."""

    file: Path
    machine_name: str | None
    defines: tuple[tuple[str, str], ...]
    predictor: str
    cores: int
    unit_name: str
    taken: float | None
    given_terms: str | None
    core: str
    assembly_file: Path | None
    architecture: str
    flags: str
    iterations_per_pass: float | None
    overlapping: tuple[str, ...]
    solved: str | None
    measures: bool
    compiler: str
    device_id: str | None
    as_json: bool
    plot_file: Path | None

    def __post_init__(self) -> None:
        if self.is_problem and (
            self.measures
            or self.given_terms
            or self.assembly_file
            or self.solved
            or self.taken is not None
        ):
            msg = (
                "--measure, --in-core, --assembly, --taken and --transitions are for C loops; "
                "`kernelcast estimate --measure` measures OpenCL kernels"
            )
            raise click.UsageError(msg)
        ways = (self.assembly_file is not None, bool(self.given_terms), self.core == "osaca")
        is_half = (self.assembly_file is None) != (self.iterations_per_pass is None)
        if is_half or sum(ways) > 1:
            msg = (
                "--assembly and --per-pass belong together, and instead of --in-core and "
                "--core osaca"
            )
            raise click.UsageError(msg)
        if self.device_id is not None and not self.is_problem:
            msg = "--device records addresses of OpenCL problems (.yaml), not of C loops"
            raise click.UsageError(msg)
        if self.measures and self.cores > 1:
            msg = "--measure runs the loop on one core; leave --cores out"
            raise click.UsageError(msg)
        check_plot(self.plot_file)
        _ = self.unit, self.sizes  # wrong ones are refused now

    @property
    def is_problem(self) -> bool:
        """Whether the file is an OpenCL problem, by the end of its name."""
        return self.file.suffix.lower() in _YAML

    @cached_property
    def unit(self) -> Unit:
        """The unit that results are told in."""
        return read_unit(self.unit_name)

    @cached_property
    def sizes(self) -> Sizes:
        """The constants."""
        fixed: dict[str, int] = {}
        swept: dict[str, tuple[int, ...]] = {}
        for name, text in self.defines:
            if ":" in text:
                told = f"-D {name} {text!r}"
                swept[name] = read_range(text, told=told, example="100:2000:20")
            else:
                fixed[name] = _read_number(name, text)
        if len(swept) > 1:
            msg = f"-D {', '.join(swept)}: one constant may have a range, the others one value"
            raise InputError(msg)
        for name, values in swept.items():
            return Sizes(fixed=fixed, name=name, values=values)
        return Sizes(fixed=fixed)

    def find_description(self) -> MachineDescription:
        """Find the machine: the one asked for, or the only CPU that was calibrated here."""
        if self.machine_name is not None:
            return find_machine(self.machine_name)
        own = [one for one in list_machines() if not one.is_shipped]
        if len(own) == 1:
            return find_machine(own[0].path)
        names = ", ".join(one.name for one in own) or "none; `kernelcast calibrate` makes one"
        msg = f"which machine? Give one with --machine; calibrated here: {names}"
        raise InputError(msg)

    def model(self) -> tuple[str, LoopModel]:
        """Read the loop and the machine."""
        source, nest = read_loop_file(self.file, self.sizes.fixed)
        nest = replace(nest, taken=self.taken)
        machine = self._machine()
        provider, notes = self._in_core(source, nest, machine)
        model = LoopModel(
            nest=replace(nest, notes=(*nest.notes, *notes)), machine=machine,
            predictor=self.predictor, in_core=provider,
        )  # fmt: skip
        return source, model

    def _machine(self) -> CpuMachine:
        return read_machine(self.find_description(), overlapping=self.overlapping)

    def _in_core(
        self, source: str, nest: LoopNest, machine: CpuMachine
    ) -> tuple[InCoreProvider | None, tuple[str, ...]]:
        """Give what knows the time in the core, None for the instruction table, and notes."""
        if self.assembly_file is not None:
            return self._read_assembly(self.assembly_file, machine), ()
        if self.given_terms is not None:
            return self._read_terms(self.given_terms), ()
        if self.core == "table":
            return None, ()
        choice = CompilerChoice(
            compiler=self.compiler, flags=shlex.split(self.flags), architecture=self.architecture
        )
        constants = dict(self.sizes.fixed)
        if self.sizes.name:
            constants[self.sizes.name] = max(self.sizes.values)
        is_wanted = self.core == "osaca" or self.architecture or self.flags
        try:
            found = compile_loop(source, nest, machine, constants, choice)
        except InputError as error:
            if is_wanted:
                raise
            return None, (f"in the core: instruction table, not OSACA: {error}",)
        if found.loop.calls and not is_wanted:
            called = ", ".join(found.loop.calls)
            return None, (f"in the core: instruction table, for OSACA does not know {called}",)
        return found, ()

    def _read_terms(self, given: str) -> InCoreProvider:
        parts = given.replace("|", ",").split(",")
        try:
            overlapping, loads = (float(one) for one in parts if one.strip())
        except ValueError as error:
            msg = (
                f"--in-core {given!r}: expected two numbers of cycles per cache line, T_OL,T_nOL, "
                "such as 52,54"
            )
            raise InputError(msg) from error
        terms = InCoreTerms(overlapping=overlapping, non_overlapping=loads, provider="given")
        return GivenTerms(terms=terms)

    def _read_assembly(self, path: Path, machine: CpuMachine) -> InCoreProvider:
        try:
            assembly = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            msg = f"{path}: the assembly cannot be read: {error}"
            raise InputError(msg) from error
        architecture = self.architecture or choose_architecture(machine)[0].name
        return OsacaProvider(
            assembly, architecture=architecture, iterations=self.iterations_per_pass or 0.0
        )


def _read_number(name: str, text: str) -> int:
    try:
        value = evaluate(text)
    except ArithmeticProblem as problem:
        msg = f"-D {name} {text!r}: expected a whole number or FIRST:LAST:STEP ({problem})"
        raise InputError(msg) from problem
    if int(value) != value or value < 1:
        msg = f"-D {name} {text!r}: expected a whole number of at least 1"
        raise InputError(msg)
    return int(value)
