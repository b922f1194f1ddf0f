"""Ranks configurations by models: nothing runs on a device."""

import multiprocessing
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from kernelcast.analytic.cpu.opencl.device import read_device
from kernelcast.launches.modelling.estimating import estimate_analytically
from kernelcast.launches.modelling.launches import choose_local_size, model_kernel
from kernelcast.records.arguments import BufferArgument, LocalArgument
from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.errors import KernelcastError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.problem import Problem
from kernelcast.tuning.cpu_cost import cost_launch
from kernelcast.tuning.report import TunedConfiguration
from kernelcast.tuning.space import SearchSpace

_MODERN_LANGUAGE = re.compile(r"-cl-std=CL[23]\.\d")


def find_obstacle(problem: Problem, device: DeviceDescription, *, local_bytes: int = 0) -> str:
    """Say why a device cannot take a launch; empty if nothing speaks against it."""
    ndrange = problem.ndrange
    if ndrange.local_size is not None:
        if ndrange.work_group_size > device.max_work_group_size:
            return (
                f"{ndrange.work_group_size} work-items a work-group, the device allows "
                f"{device.max_work_group_size}"
            )
        for size, most in zip(ndrange.local_size, device.max_work_item_sizes, strict=False):
            if size > most:
                return f"local size {size} in a dimension, the device allows {most}"
        is_modern = any(_MODERN_LANGUAGE.fullmatch(one) for one in problem.kernel.build_options)
        if not ndrange.is_uniform and not (device.has_non_uniform_work_groups and is_modern):
            return f"local size {ndrange.local_size} does not divide {ndrange.global_size}"
    local_bytes += sum(one.bytes for one in problem.arguments if isinstance(one, LocalArgument))
    buffers = [one.bytes for one in problem.arguments if isinstance(one, BufferArgument)]
    for what, needed, most in (
        ("of local memory", local_bytes, device.local_memory_bytes),
        ("in one buffer", max(buffers, default=0), device.max_allocation_bytes),
        ("of buffers", sum(buffers), device.global_memory_bytes),
    ):
        if needed > most:
            return f"{needed:,} bytes {what}, the device allows {most:,}"
    return ""


_WORTH_PROCESSES = 32


def predict(
    device: DeviceDescription, machine: MachineDescription, problem: Problem
) -> dict[str, Any]:
    """Predict a launch by models; what cannot be launched or modelled says why."""
    ndrange = problem.ndrange
    seconds, limiter, note = None, "", ""
    obstacle = find_obstacle(problem, device)
    if not obstacle:
        try:
            kernel = model_kernel(problem)
            note = next((one.reason for one in kernel.facts.gaps), "")
            obstacle = find_obstacle(problem, device, local_bytes=kernel.facts.local_bytes)
            if not obstacle:
                ndrange, _ = choose_local_size(ndrange, kernel.facts)
                made = (
                    cost_launch(kernel, ndrange, read_device(machine))
                    if machine.kind is DeviceKind.CPU
                    else estimate_analytically(kernel.launch(ndrange), machine)
                )
                seconds, limiter = made.seconds, made.limiter
        except KernelcastError as error:
            # Not known to be impossible: it is ranked behind all that have a prediction.
            limiter = f"not modelled: {error}"
    return {
        "global_size": ndrange.global_size, "local_size": ndrange.local_size or (),
        "build_options": problem.kernel.build_options, "predicted_s": seconds,
        "obstacle": obstacle, "limiter": limiter, "note": note,
    }  # fmt: skip


@contextmanager
def several_processes(space: SearchSpace) -> Iterator[Executor | None]:
    """Open processes that predict beside each other, where that pays and is safe."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    # A copy of a process with threads may hang.
    is_safe = sys.platform == "linux" and threading.active_count() == 1
    if cores < 2 or not is_safe or len(space.configurations) < _WORTH_PROCESSES:
        yield None
        return
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(
        max_workers=min(cores, 8),
        mp_context=context,
        # Ctrl-C ends the parent, which ends them.
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
    ) as one:
        yield one


def rank(
    space: SearchSpace,
    device: DeviceDescription,
    machine: MachineDescription,
    *,
    executor: Executor | None = None,
    report: Callable[[int, int], None] = lambda _, __: None,
) -> dict[int, TunedConfiguration]:
    if machine.kind is DeviceKind.CPU:
        read_device(machine)  # complains once, not for each configuration
    found = {one.number: one for one in space.configurations}
    numbers = [number for number, one in found.items() if one.problem is not None]
    problems = [one.problem for one in space.configurations if one.problem is not None]
    predict_one = partial(predict, device, machine)
    answers = (
        map(predict_one, problems)
        if executor is None
        else executor.map(predict_one, problems, chunksize=4)
    )
    for done, (number, prediction) in enumerate(zip(numbers, answers, strict=True), start=1):
        found[number] = replace(found[number], **prediction)
        report(done, len(numbers))
    return found
