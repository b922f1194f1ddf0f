"""Ranks configurations by models: nothing runs on a device."""

import multiprocessing
import os
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
from kernelcast.records.device import DeviceDescription, DeviceKind
from kernelcast.records.errors import DeviceLimitError, KernelcastError
from kernelcast.records.machine import MachineDescription
from kernelcast.records.problem import Problem
from kernelcast.sampling.compiler_facts import check_memory, check_sizes
from kernelcast.tuning.cpu_cost import cost_launch
from kernelcast.tuning.report import TunedConfiguration
from kernelcast.tuning.space import SearchSpace


def find_obstacle(problem: Problem, device: DeviceDescription, *, local_bytes: int = 0) -> str:
    """Say why a device cannot take a launch; empty if nothing speaks against it."""
    try:
        check_memory(device, problem.arguments, local_bytes)
        if problem.ndrange.local_size is not None:
            check_sizes(device, problem.kernel, problem.ndrange)
    except DeviceLimitError as error:
        return str(error)
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
                    else estimate_analytically(kernel.launch(), machine)
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
