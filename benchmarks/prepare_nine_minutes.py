"""Prepares what `nine_minutes.py` takes along: packages, compiled kernels, sizes.

Run ``python -m benchmarks prepare_nine_minutes FOLDER`` where a compiler, a network and the
packages of the extras ``compile`` and ``cuda`` are; it takes ten minutes, most of them for a trial
without a GPU. FOLDER then holds

- ``packages.tar.xz``: the packages that a Python of scientists lacks, for Python 3.12 on x86-64,
  and a stub of kernelcast's own metadata;
- ``compiled.tar.xz``: kernelcast's cache of compiled code, with PTX of the corpus, the examples,
  the stencils, the configurations and all that probes, microbenchmarks and traces are made of. The
  latter is what a run on a stand-in for a GPU asked for;
- ``plan.json``: two sizes per kernel of the corpus, by the work-groups that fill the GPU.

``--only`` makes some of the three anew. The sum of what travels with the repository is printed.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from nine_minutes import find_cache
from nine_minutes_kernels import (
    STRIDES,
    list_configurations,
    list_stencils,
    make_stream,
    make_stride,
)
from packaging.requirements import Requirement

from kernelcast.collection.corpus_problems import prepare_launch
from kernelcast.compiling import Target, assemble_ptx, compile_kernel
from kernelcast.launches.problem_file import read_problem
from kernelcast.records.arguments import BufferArgument, LocalArgument
from kernelcast.records.errors import KernelcastError
from kernelcast.records.kernel import Kernel
from kernelcast.records.occupancy import compute_p_sat, find_limits
from kernelcast.records.problem import Problem
from kernelcast.sampling.discovery import find_devices
from kernelcast.sampling.session import open_session
from kernelcast.training_data.applications import CorpusKernel, find_kernels, load_input_maker

ROOT = Path(__file__).resolve().parents[1]
_THERE = frozenset({
    "numpy", "scipy", "scikit-learn", "pandas", "numba", "cuda-bindings", "pyarrow",
})  # fmt: skip
_ALSO = ("joblib", "nvidia-ml-py")
_PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014",
              "manylinux2010", "manylinux1")  # fmt: skip
_ENOUGH = 16
_FILLS = (24, 72)
"""How often the two sizes of a kernel fill the device."""
_MOST_BYTES = {False: 4 << 30, True: 512 << 20}
"""Of all buffers, by whether a program of the corpus makes their contents."""
_RECORDED_STEPS = ("device", "ladders", "memory", "dispatch", "answers")
_TRAVELS_BYTES = 64 << 20


def pack_packages(target: Path, version: str) -> None:
    """Pack packages for a version of Python, and a stub of the metadata of kernelcast."""
    with tempfile.TemporaryDirectory() as made:
        site = Path(made) / "site"
        platforms = [word for one in _PLATFORMS for word in ("--platform", f"{one}_x86_64")]
        subprocess.run(
            [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--only-binary=:all:",
             "--python-version", version, "--implementation", "cp", *platforms, "--no-compile",
             "--target", str(site), *list_packages()],
            check=True,
        )  # fmt: skip
        stub = site / f"kernelcast-{distribution('kernelcast').version}.dist-info"
        stub.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: kernelcast\nVersion: {stub.name[11:-10]}\n"
        (stub / "METADATA").write_text(metadata, encoding="utf-8")
        with tarfile.open(target, "w:xz", preset=6) as archive:
            for path in sorted(site.iterdir()):
                archive.add(path, path.name)


def list_packages() -> list[str]:
    """List kernelcast's own needs, and theirs, that are not there, at the versions of here."""
    versions: dict[str, str] = {}

    def add(name: str) -> None:
        key = name.lower().replace("_", "-").replace(".", "-")
        if key in versions or key in _THERE:
            return
        try:
            package: Distribution | None = distribution(name)
        except PackageNotFoundError:
            package = None
        versions[key] = f"{name}=={package.version}" if package else name
        for line in (package.requires or []) if package else []:
            need = Requirement(line)
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                add(need.name)

    for line in distribution("kernelcast").requires or []:
        need = Requirement(line)
        if need.marker is None or need.marker.evaluate({"extra": ""}):
            add(need.name)
    for name in _ALSO:
        add(name)
    return sorted(versions.values())


def choose_start(kernel: CorpusKernel, cache: Path) -> int:
    """Choose a small size: at the least ones, inputs of some kernels leave buffers of nothing."""
    size = kernel.size
    for least in (4 * size.least, 64, 4096):
        value = size.fit(max(4 * size.least, least))
        try:
            prepare_launch(
                kernel, {size.parameter: value}, local_size=kernel.local_sizes[0],
                cache_folder=cache,
            )  # fmt: skip
        except KernelcastError:
            continue
        return value
    return size.most


def list_kernels(cache: Path) -> Iterator[Kernel]:
    for kernel in find_kernels():
        yield prepare_launch(
            kernel, {kernel.size.parameter: choose_start(kernel, cache)},
            local_size=kernel.local_sizes[0], cache_folder=cache,
        ).problem.kernel  # fmt: skip
    for path in sorted((ROOT / "examples").glob("*/*.yaml")):
        try:
            yield read_problem(path).kernel
        except KernelcastError:  # another kind of file
            continue
    for problem in (
        *(one for is_small in (False, True) for one in list_stencils(is_small=is_small)),
        *(one for is_small in (False, True) for one in list_configurations(is_small=is_small)),
        make_stream("kc_copy", 256),
        make_stream("kc_read", 256), *(make_stride(stride, 1) for stride in STRIDES),
    ):  # fmt: skip
        yield problem.kernel


def compile_all(target: Path, *, trial_s: float) -> None:
    """Have kernelcast compile all kernels, and in a trial what it needs of its own. Both run on a
    stand-in for a GPU, with a cache of their own."""
    here = str(Path(__file__).resolve())
    with tempfile.TemporaryDirectory() as made:
        cache = find_cache(Path(made) / f"nine-minutes-{os.getuid()}")
        environment = {
            **os.environ, "TMPDIR": made, "XDG_CACHE_HOME": str(cache),
            "KERNELCAST_CUDA_DRIVER": "support.cuda_driver", "KERNELCAST_CUDA_STAND_IN_ALONE": "1",
            "PYTHONPATH": os.pathsep.join(
                str(ROOT / name) for name in ("benchmarks", "src", "tests")
            ),
        }  # fmt: skip
        trial = [
            sys.executable, str(ROOT / "benchmarks" / "nine_minutes.py"), f"{made}/results",
            "--small", "--seconds", str(trial_s),
            *(word for step in _RECORDED_STEPS for word in ("--step", step)),
        ]  # fmt: skip
        for command in ([sys.executable, here, made, "--build"], *([trial] if trial_s else [])):
            subprocess.run(command, check=True, env=environment)
        entries = sorted(
            (cache / "kernelcast" / "compiled").glob("*.json"),
            key=lambda path: path.read_bytes()[:4000],  # alike texts side by side
        )
        with tarfile.open(target, "w:xz", preset=9) as archive:
            for path in entries:
                archive.add(path, path.name)
    print(f"{len(entries)} programs in {target.stat().st_size / 1e3:.0f} kB")


def build_all(cache: Path) -> None:
    session = open_session(*find_devices()[0])
    session.try_out()
    built, failures = 0, []
    for kernel in list_kernels(cache):
        try:
            session.whole_kernel(kernel)
            built += 1
        except KernelcastError as error:
            failures.append(f"{kernel.name}: {str(error)[:300]}")
    print(f"{built} kernels built, {len(failures)} failed", *failures, sep="\n", flush=True)


def count_active(problem: Problem, processor: str) -> int:
    """Count the work-groups of a launch that are active at once on a unit of a GPU of NVIDIA's.
    Registers and local memory are the assembler's, what they leave room for is by the rules."""
    kernel, major = problem.kernel, int(processor[3:]) // 10
    compiled = compile_kernel(
        kernel.source, kernel.build_options, Target.parse(processor), source_name=kernel.source_name
    )
    facts = assemble_ptx(compiled.text, processor)[kernel.name]
    limits = find_limits("NVIDIA Corporation", "", (major, int(processor[3:]) % 10))
    assert limits is not None, processor
    given = (one.bytes for one in problem.arguments if isinstance(one, LocalArgument))
    p_sat, _ = compute_p_sat(
        limits,
        work_group_size=problem.ndrange.work_group_size,
        registers_per_work_item=facts.registers,
        local_memory_bytes=facts.shared_bytes + sum(given),
        uses_barriers=facts.barriers > 0,
    )
    return p_sat


def plan_sizes(kernel: CorpusKernel, cache: Path, processor: str, units: int) -> dict[str, Any]:
    """Plan two sizes of a kernel that fill a GPU several times, as far as memory allows. Where a
    program makes the inputs, sizes beyond the least two are foretold from these."""
    size, has_maker = kernel.size, load_input_maker(kernel) is not None

    def make(value: int) -> Problem:
        return prepare_launch(
            kernel, {size.parameter: value}, local_size=kernel.local_sizes[0], cache_folder=cache
        ).problem

    def look(value: int) -> tuple[float, float]:
        problem = make(value)
        buffers = (one for one in problem.arguments if isinstance(one, BufferArgument))
        return float(problem.ndrange.work_group_count), float(sum(one.bytes for one in buffers))

    first = choose_start(kernel, cache)
    second = size.fit(max(2 * first, first + size.multiple_of))
    (groups, bytes_), (more_groups, more_bytes) = look(first), look(second)
    steps = math.log(second / first)
    growth = math.log(more_groups / groups) / steps, math.log(more_bytes / bytes_) / steps

    def foretell(value: int) -> tuple[float, float]:
        if not has_maker:
            return look(value)
        return groups * (value / first) ** growth[0], bytes_ * (value / first) ** growth[1]

    unit = units * count_active(make(first), processor)
    chosen: list[int] = []
    best = first
    values = dict.fromkeys(
        size.fit(round(first * 2 ** (step / 2))) for step in range(2 * 40)
        if first * 2 ** (step / 2) <= size.most
    )  # fmt: skip
    for value in values:
        try:
            found_groups, found_bytes = foretell(value)
        except KernelcastError:
            break
        if found_bytes > _MOST_BYTES[has_maker]:
            break
        best = value
        if found_groups >= _FILLS[len(chosen)] * unit:
            chosen.append(value)
            if len(chosen) == len(_FILLS):
                break
    if best not in chosen and len(chosen) < len(_FILLS):
        chosen.append(best)
    if len(chosen) < len(_FILLS) and size.fit(best // 2) not in chosen:
        chosen.append(size.fit(best // 2))
    return {
        "sizes": [{size.parameter: value} for value in chosen],
        "fills": [round(foretell(value)[0] / unit, 2) for value in chosen],
    }


def plan_all(target: Path, cache: Path, processor: str, units: int) -> None:
    plan = {}
    for kernel in find_kernels():
        try:
            plan[kernel.name] = plan_sizes(kernel, cache, processor, units)
        except (KernelcastError, ValueError) as error:
            print(f"{kernel.name}: {error}")
    target.write_text(json.dumps(plan, indent=0) + "\n", encoding="utf-8")
    filled = sum(one["fills"][0] >= _FILLS[0] for one in plan.values())
    enough = sum(max(one["fills"]) >= _ENOUGH for one in plan.values())
    print(
        f"{len(plan)} kernels planned for {units} units of {processor}: {filled} fill these "
        f"{_FILLS[0]} times, {enough} at least {_ENOUGH} times"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", action="append", choices=["packages", "compiled", "plan"])
    parser.add_argument("--python", default="3.12", help="version of the GPU machine's Python")
    parser.add_argument("--processor", default="sm_90", help="the GPU, as clang names it")
    parser.add_argument("--units", type=int, default=132, help="its compute units")
    parser.add_argument("--trial", type=float, default=600.0, help="seconds on the stand-in")
    parser.add_argument("--build", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.build:
        build_all(options.folder / "inputs")
        return
    wanted = options.only or ["packages", "compiled", "plan"]
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as cache:
        makers: dict[str, Callable[[], None]] = {
            "plan": lambda: plan_all(
                folder / "plan.json", Path(cache), options.processor, options.units
            ),
            "packages": lambda: pack_packages(folder / "packages.tar.xz", options.python),
            "compiled": lambda: compile_all(folder / "compiled.tar.xz", trial_s=options.trial),
        }
        for name in wanted:
            begun_s = time.monotonic()
            makers[name]()
            print(f"{name}: {time.monotonic() - begun_s:.0f} s", flush=True)
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
    ).stdout.split(b"\0")  # fmt: skip
    paths = (ROOT / os.fsdecode(name) for name in tracked if name)
    tracked_bytes = sum(path.stat().st_size for path in paths if path.is_file())
    prepared_bytes = sum(path.stat().st_size for path in folder.iterdir())
    total = tracked_bytes + prepared_bytes
    print(
        f"travels: {tracked_bytes / 1e6:.1f} MB of the repository, {prepared_bytes / 1e6:.1f} MB"
        f" prepared, {total / 1e6:.1f} MB of {_TRAVELS_BYTES / 1e6:.1f}"
    )
    if total > _TRAVELS_BYTES:
        sys.exit("more than 64 MiB: leave something out")


if __name__ == "__main__":
    main()
