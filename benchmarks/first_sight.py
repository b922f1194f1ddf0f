"""What answers about live pyopencl objects cost beside samples and builds.

Run ``python benchmarks/first_sight.py --device DEVICE``. 20 kernels of the corpus and 13 held out:
a new kernel, a new size of a known kernel, where nothing may run too, and the same again. Writes
``results/first_sight/live-<device>.json``, and docs/how-to/schedule-with-estimates.md from all
results, those of `first_sight_service.py` too.
"""

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from machine import describe_machine

ROOT = Path(__file__).resolve().parents[1]
CORPUS, HELD_OUT = ROOT / "src" / "kernelcast" / "training_data" / "corpus", ROOT / "benchmarks"
CORPUS_KERNELS, HELD_OUT_KERNELS = 20, 13
# Is asked about first, and not measured: what the first answer of a process pays is no kernel's.
WARM_UP = ROOT / "examples" / "mandelbrot" / "mandelbrot.yaml"
# Larger ones take longer to fill than all answers about them.
MOST_BYTES = 600 << 20
REPEATS, SIZES = 300, 24
# Sizes that may be sampled, and seconds of repeated questions: contents that decide take some.
SAMPLED, LONGEST_S = 4, 0.5
NEW, SIZE, KNOWN, UNSAMPLED, AGAIN = (
    "new kernel", "new size, others estimated", "new size, others observed",
    "new size, others observed, nothing may run", "repeated",
)  # fmt: skip
QUESTIONS = (NEW, SIZE, KNOWN, UNSAMPLED, AGAIN)
RESULTS = ROOT / "benchmarks" / "results" / "first_sight"
PAGE = ROOT / "docs" / "how-to" / "schedule-with-estimates.md"
BEGIN, END = "<!-- first sight: begin -->", "<!-- first sight: end -->"
WAYS = {
    "command line, 1 GiB of buffers, first": "command line, first",
    "the same again, another process": "command line, again",
    "wrong kernel name": "command line, wrong name",
    "service, first": "service, first",
    "service, another size": "service, new size",
    "service, the same again": "service, kept",
}


def main() -> None:
    """Measure, and write the result and the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="intel", help="an id or its beginning")
    result = measure_device(parser.parse_args().device)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"live-{result['device']}.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    write_page()


def measure_device(device_id: str) -> dict[str, Any]:
    """Ask about each kernel."""
    os.environ["KERNELCAST_DATA"] = tempfile.mkdtemp()
    from kernelcast.sampling.discovery import choose_device, find_devices
    from kernelcast.sampling.session import open_session

    description, handle = choose_device(device_id, find_devices())
    session = open_session(description, handle)
    rows: list[dict[str, Any]] = []
    paths = choose_paths()
    with _Asked.opened() as asked:
        measure_kernel(asked, session, WARM_UP)
        for path in paths:
            try:
                found = measure_kernel(asked, session, path)
            except Exception as error:  # noqa: BLE001 - told, and the next kernel is asked about
                found = {"error": f"{type(error).__name__}: {error}"[:300]}
            rows.append({"problem": path.stem, **found})
            print(f"[{len(rows)}/{len(paths)}] {path.stem}", file=sys.stderr, flush=True)
    return {"machine": describe_machine(), "device": description.id, "rows": rows}


@dataclass(slots=True)
class _Asked:
    """Predictors that stay: one that may run work-groups, and one that may not."""

    predictor: Any
    bare: Any

    @classmethod
    @contextlib.contextmanager
    def opened(cls) -> Iterator["_Asked"]:
        """Open both, each with a store of its own."""
        from kernelcast import Predictor
        from kernelcast.launches.settings import EstimateSettings
        from kernelcast.predictor.predictor_options import PredictorOptions

        unsampled = PredictorOptions(settings=replace(EstimateSettings(), samples=False))
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            with (
                Predictor(store=folder / "rows.sqlite") as predictor,
                Predictor(store=folder / "unsampled.sqlite", options=unsampled) as bare,
            ):
                yield cls(predictor, bare)


def choose_paths() -> list[Path]:
    """Give problems of the corpus all over their sizes, and those held out."""
    from kernelcast.launches.problem_file import read_problem
    from kernelcast.records.errors import KernelcastError

    chosen = []
    for folder, count in ((CORPUS, CORPUS_KERNELS), (HELD_OUT / "heldout", HELD_OUT_KERNELS)):
        sized = []
        for path in sorted(folder.glob("*/*.yaml")):
            with contextlib.suppress(KernelcastError):  # those whose inputs are generated
                sized.append((read_problem(path).buffer_bytes, path))
        sized = sorted(one for one in sized if one[0] <= MOST_BYTES)
        count = min(count, len(sized))
        chosen += [sized[place * len(sized) // count][1] for place in range(count)]
    return chosen


@dataclass(slots=True)
class _Kernel:
    """A kernel with buffers that are there, and launches of parts of it."""

    make: Callable[[int], Any]
    """Makes a launch whose last dimension has so many work-groups."""
    groups: int


@contextlib.contextmanager
def hold_problem(session: Any, path: Path) -> Iterator[_Kernel]:  # noqa: ANN401 - a session
    """Build a problem's kernel and put its buffers there."""
    import pyopencl as cl

    from kernelcast import Launch, read_problem
    from kernelcast.sampling.problems import ProblemArguments

    problem = read_problem(path)
    program = cl.Program(session.context, problem.kernel.source)
    program.build(list(problem.kernel.build_options))
    kernel = cl.Kernel(program, problem.kernel.name)
    accesses = [None] * len(problem.arguments)
    held = ProblemArguments(session, problem, accesses, seed=0)
    ndrange = problem.ndrange
    local = ndrange.local_size
    unit = local[-1] if local else 1

    def make(groups: int) -> Any:  # noqa: ANN401 - a Launch
        return Launch(
            kernel, (*ndrange.global_size[:-1], groups * unit), local, held.arguments,
            queue=session.queue, global_offset=ndrange.global_offset,
            source=problem.kernel.source, build_options=problem.kernel.build_options,
        )  # fmt: skip

    try:
        yield _Kernel(make, max(1, ndrange.global_size[-1] // unit))
    finally:
        held.release()
        del program


def measure_kernel(asked: _Asked, session: Any, path: Path) -> dict[str, Any]:  # noqa: ANN401
    """Ask all questions about a kernel; seconds beside samples and builds."""
    from kernelcast.launches.live import describe_live, list_contents

    with hold_problem(session, path) as kernel:
        found = ask_all(asked, kernel)
        found["contents_decide"] = bool(list_contents(describe_live(kernel.make(1)).problem))
    return found


def ask_all(asked: _Asked, kernel: _Kernel) -> dict[str, Any]:
    """Ask all questions, in the order in which a program has them."""
    predictor, bare = asked.predictor, asked.bare
    whole, half = kernel.make(kernel.groups), kernel.make(max(1, kernel.groups // 2))
    found: dict[str, Any] = {NEW: ask(predictor, whole, is_new=True)}
    if half.global_size != whole.global_size:
        found[SIZE] = ask(predictor, half)
    found[AGAIN] = {"rest_s": min(repeat(predictor, whole))}
    seconds = predictor.estimate(whole).seconds
    sizes = list_sizes(kernel.groups)
    if len(sizes) < 3 + 4:
        return {**found, "few_sizes": len(sizes)}
    for size in sizes[:3]:
        for one in (predictor, bare):
            one.observe(kernel.make(size), seconds * size / kernel.groups, is_first=False)
    predictor.flush()
    bare.flush()
    later = [kernel.make(size) for size in sizes[3:]]
    found[KNOWN] = min(
        (ask(predictor, one) for one in later[:SAMPLED]), key=lambda one: float(one["rest_s"])
    )
    if bare_s := ask_bare(bare, later):
        found[UNSAMPLED] = {"rest_s": min(bare_s)}
    return found


def repeat(predictor: Any, launch: Any) -> Iterator[float]:  # noqa: ANN401 - of the package
    """Time the same question again and again, a while."""
    ends_s = time.perf_counter() + LONGEST_S
    for _ in range(REPEATS):
        yield time_call(predictor, launch)
        if time.perf_counter() > ends_s:
            return


def ask_bare(bare: Any, launches: list[Any]) -> list[float]:  # noqa: ANN401 - a Predictor
    """Time answers of one that may run nothing; none where it has no answer."""
    from kernelcast.records.errors import KernelcastError

    with contextlib.suppress(KernelcastError):
        return [time_call(bare, one) for one in launches]
    return []


def list_sizes(groups: int) -> list[int]:
    """Give numbers of work-groups all over, none of which is the whole or half of it."""
    step = max(1, groups // (2 * SIZES))
    found = [one for one in range(groups // 4 + 1, groups, step) if 2 * one != groups]
    order = np.random.default_rng(0).permutation(len(found))
    return [found[place] for place in order][: SIZES + 3]


def ask(
    predictor: Any,  # noqa: ANN401 - of the package
    launch: Any,  # noqa: ANN401 - of the package
    *,
    is_new: bool = False,
) -> dict[str, Any]:
    """Time an answer, less its samples and builds: of a new kernel, what its own took too."""
    begin_s = time.perf_counter()
    estimate = predictor.estimate(launch)
    took_s = time.perf_counter() - begin_s
    build_s = estimate.build_seconds
    if is_new:  # built when it was described, before that is counted
        build_s += estimate.compile_seconds or 0.0
    if build_s + estimate.sampling_seconds > took_s:
        msg = f"{took_s:.4f} s hold no build of {build_s:.4f} s and samples: was it asked before?"
        raise AssertionError(msg)
    return {
        "took_s": took_s,
        "build_s": build_s,
        "sampling_s": estimate.sampling_seconds,
        "rest_s": took_s - build_s - estimate.sampling_seconds,
        "tier": str(estimate.tier),
        "is_busy": estimate.explain().contention is not None,
    }


def time_call(predictor: Any, launch: Any) -> float:  # noqa: ANN401 - of the package
    """Time an answer."""
    begin_s = time.perf_counter()
    predictor.estimate(launch)
    return time.perf_counter() - begin_s


def tell(seconds: float) -> str:
    """Write a time."""
    return f"{1e6 * seconds:.1f} us" if abs(seconds) < 1e-3 else f"{1e3 * seconds:.1f} ms"


def write_page() -> None:
    """Write the table of all results into its page."""
    live = [_read(one) for one in sorted(RESULTS.glob("live-*.json"))]
    names = " | ".join(f"`{one['device']}`" for one in live)
    lines = [f"| | {names} |", f"|---|{'---:|' * len(live)}"]
    for question in QUESTIONS:
        cells = " | ".join(_tell_live(one, question) for one in live)
        lines.append(f"| `Predictor`: {question} | {cells} |")
    for path in sorted(RESULTS.glob("ways-*.json")):
        result = _read(path)
        for name, key in WAYS.items():
            told = tell(median(result["seconds"][key]))
            ours = (one["device"].startswith(result["device"]) for one in live)
            lines.append(f"| {name} | {' | '.join(told if is_ours else '' for is_ours in ours)} |")
    block = "\n".join((BEGIN, "", *lines, "", END))
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{block}{rest.partition(END)[2]}", encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _tell_live(result: dict[str, Any], question: str) -> str:
    """Give median and 90th percentile over kernels."""
    times = np.array([one[question]["rest_s"] for one in result["rows"] if question in one])
    middle, most = np.quantile(times, (0.5, 0.9))
    return f"{tell(middle)}, {tell(most)}"


if __name__ == "__main__":
    main()
