"""How long an answer takes where nothing runs, once the source of a kernel is known.

``python benchmarks/static_speed.py`` measures launches of the examples that nobody asked for
before, and the corpus at random sizes: which share of them is answered by what another size did,
and how long these and the others take. Processor time, the least of several rounds. Writes
``results/static_speed.json``.
"""

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from cpu_time import least_us
from machine import describe_machine

from kernelcast.launches.machine_file import read_machine
from kernelcast.launches.modelling.launches import choose_local_size
from kernelcast.launches.problem_file import read_problem
from kernelcast.launches.static_answers import KernelAnswers
from kernelcast.records.errors import KernelcastError
from kernelcast.records.machine import MachineDescription
from kernelcast.training_data.applications import CorpusKernel, find_kernels

ROOT = Path(__file__).resolve().parent
CALIBRATED = ROOT / "results/calibration/intel-amd-epyc-c960.yaml"
ROUNDS = 7
SIZES = 24
"""Sizes of each kernel; those of the second half are told apart."""


def time_examples(machine: MachineDescription) -> Iterator[tuple[str, float]]:
    """Time first answers of launches whose source is known, in microseconds."""
    for path in sorted((ROOT.parent / "examples").glob("*/*.yaml")):
        problem = read_problem(path)
        ndrange, _ = choose_local_size(problem.ndrange)
        found = []
        try:
            for _ in range(ROUNDS):
                answers = KernelAnswers(problem.kernel, ndrange.known_local_size, machine)
                begin = time.process_time()
                answers.answer(problem, ndrange)
                found.append(1e6 * (time.process_time() - begin))
        except KernelcastError:  # addresses that depend on data
            continue
        yield path.stem, min(found)


def time_sizes(
    kernel: CorpusKernel, machine: MachineDescription
) -> tuple[list[float], list[float]]:
    """Time sizes of a kernel in microseconds: those that share work, and those that do not."""
    answers: dict[tuple[int, ...], KernelAnswers] = {}
    shared, own = [], []
    draw = random.Random(kernel.name)
    for number in range(SIZES):
        value = kernel.size.fit(draw.uniform(kernel.size.least, kernel.size.most))
        problem = read_problem(kernel.problem_path, parameters={kernel.size.parameter: value})
        ndrange, _ = choose_local_size(problem.ndrange)
        local = ndrange.known_local_size
        if local not in answers:
            answers[local] = KernelAnswers(problem.kernel, local, machine)
        known = answers[local]
        before, begin = known.studied, time.process_time()
        known.answer(problem, ndrange)
        took = 1e6 * (time.process_time() - begin)
        if number < SIZES // 2:
            continue
        if known.studied > before:
            own.append(took)
        else:
            shared.append(
                least_us(lambda: known.answer(problem, ndrange), rounds=ROUNDS, times=20)  # noqa: B023
            )
    return shared, own


def main() -> None:
    """Measure, print and write."""
    machine = read_machine(CALIBRATED)
    examples = dict(time_examples(machine))
    shared, own, shares = [], [], {}
    for kernel in find_kernels():
        if (kernel.problem_path.parent / "inputs.py").is_file():
            continue
        try:
            some, others = time_sizes(kernel, machine)
        except KernelcastError:
            continue
        shared += some
        own += others
        shares[kernel.name] = len(some) / (len(some) + len(others))
    found = {
        "machine": describe_machine(),
        "first_us": examples,
        "first_median_us": float(np.median([*examples.values()])),
        "kernels": len(shares),
        "sizes": len(shared) + len(own),
        "share_of_sizes": len(shared) / (len(shared) + len(own)),
        "kernels_with_half": float(np.mean([one >= 0.5 for one in shares.values()])),
        "another_size_us": np.percentile(shared, [10, 50, 90]).tolist(),
        "other_work_us": np.percentile(own, [10, 50, 90]).tolist(),
        "shares": shares,
    }
    (ROOT / "results/static_speed.json").write_text(
        json.dumps(found, indent=1) + "\n", encoding="utf-8"
    )
    print(json.dumps({name: one for name, one in found.items() if name != "shares"}, indent=1))


if __name__ == "__main__":
    main()
