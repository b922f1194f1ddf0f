"""Asks the analytic model that fits a machine, of GPUs with what a compiler makes of the kernel."""

import re
from dataclasses import replace
from functools import lru_cache
from typing import Final

from kernelcast.analytic.cpu.estimate import estimate_cpu
from kernelcast.analytic.gpu.code import read_work
from kernelcast.analytic.gpu.estimate import estimate_gpu
from kernelcast.analytic.gpu.machine import find_architecture
from kernelcast.compiling import Compiled, Target, compile_kernel, read_facts
from kernelcast.compiling.targets import read_options
from kernelcast.expressions.modelled_launch import ModelledLaunch
from kernelcast.records.arguments import ScalarArgument
from kernelcast.records.device import DeviceKind
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.explanation import AnalyticEstimate
from kernelcast.records.kernel import Kernel
from kernelcast.records.machine import MachineDescription

# Words of a board's name, and its processor; boards of an unknown name are taken for the usual
# ones, whose instructions differ little.
_PROCESSORS: Final = (
    (r"gfx[0-9a-f]+", r"\g<0>"),
    (r"mi300|mi325", "gfx942"), (r"mi2\d\d", "gfx90a"), (r"mi100", "gfx908"),
    (r"rx.?7\d00|w7\d00", "gfx1100"), (r"rx.?6\d00|w6\d00", "gfx1030"),
    (r"[hg]h?[12]00", "sm_90"), (r"l40|l4\b|rtx.?40\d\d|ada", "sm_89"),
    (r"a40\b|a10\b|a[456]000|rtx.?30\d\d", "sm_86"), (r"a100|a30\b", "sm_80"),
    (r"20[678]0|t4\b|turing|rtx.?[4568]000", "sm_75"), (r"v100|titan v", "sm_70"),
)  # fmt: skip
_USUAL: Final = {"nvidia": "sm_80", "cdna": "gfx90a", "rdna": "gfx1030"}


def add_code(launch: ModelledLaunch, machine: MachineDescription) -> ModelledLaunch:
    """Add to a launch what compiled code tells of it, if it has any: work of warps, registers.

    Instructions are counted in PTX for all GPUs, which AMD's resemble in kind; registers are those
    of the GPU's own code. Where there is no compiler or it refuses the kernel, the launch stays as
    it is, with a note.
    """
    problem = launch.problem
    if problem is None:
        return launch
    text = f"{machine.id} {machine.name}".lower()
    named = (
        match.expand(processor) for pattern, processor in _PROCESSORS
        if (match := re.search(pattern, text))
    )  # fmt: skip
    target = Target.parse(next(named, _USUAL[find_architecture(machine).name]))
    try:
        compiled = _compile(problem.kernel, target if str(target).startswith("sm_") else _PTX)
        arguments = [
            int(one.values[0])
            if isinstance(one, ScalarArgument) and isinstance(one.values[0], int)
            else None
            for one in problem.arguments
        ]
        work = read_work(compiled, problem.kernel.name, launch.ndrange, arguments)
        registers = launch.registers
        if registers is None:
            own = compiled if str(target).startswith("sm_") else _compile(problem.kernel, target)
            registers = read_facts(own, problem.kernel.name).registers.value
    except KernelcastError as error:
        note = f"instructions and registers: from the source, as {error}"
        return replace(launch, notes=(*launch.notes, note))
    notes = (
        () if work else ("instructions: from the source, since data decide how often loops run",)
    )
    return replace(launch, work=work, registers=registers, notes=(*launch.notes, *notes))


_PTX: Final = Target.parse("sm_80")


@lru_cache(maxsize=32)
def _compile(kernel: Kernel, target: Target) -> Compiled:
    return compile_kernel(
        kernel.source, kernel.build_options, target, dialect=kernel.dialect,
        source_name=kernel.source_name,
        include_folders=read_options(kernel.build_options).folders,
    )  # fmt: skip


def estimate_analytically(launch: ModelledLaunch, machine: MachineDescription) -> AnalyticEstimate:
    if machine.kind is DeviceKind.CPU:
        return estimate_cpu(launch, machine)
    if machine.kind is DeviceKind.GPU:
        return estimate_gpu(add_code(launch, machine), machine)
    msg = f"{machine.id} is of kind {machine.kind}; there are models of CPUs and of GPUs"
    raise InputError(msg)
