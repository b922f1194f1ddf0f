"""Times windows of two- and three-dimensional launches in several shapes beside the whole launch.

Run ``python benchmarks/window_shapes.py DEVICE [--rounds N] [--kernels NAME ...]``. In each round a
whole launch and windows of as many work-groups run in turn, each at places of its own: a small box
(nearly square, as the runtime then cuts it itself), a piece of a row or whole rows, and rows of a
tile launched as one row of work-groups whose ids are mapped. Gives the time per work-group over the
whole launch's, and writes ``results/window_shapes/<device>.json``. Times are processor time of the
process, all threads, so that it says something on a machine that is not quiet.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine
from window_kernels import KERNELS, WindowKernel

from kernelcast.collection.corpus.corpus import prepare_launch
from kernelcast.launches.preparing import prepared_launch
from kernelcast.records.arguments import Access
from kernelcast.records.device import DispatchOrder
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import GroupBox, NDRange
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.launch import OpenCLLaunch, enqueue
from kernelcast.sampling.mapped_windows import can_map, find_row_width, row_launch
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession, open_session
from kernelcast.sampling.windows import GOLDEN, box_near, tile_of
from kernelcast.training_data.applications.loading import find_kernels

FOLDER = Path(__file__).resolve().parent / "results" / "window_shapes"
CORPUS = ("conv_net/conv3x3", "gemm/register_blocked", "heat3d/heat_points", "jacobi2d/sweep",
          "image_filters/gaussian", "dense_solve/transpose_padded")  # fmt: skip
SHARE = 0.02
FORMS = ("box", "row", "mapped")


def main() -> None:
    """Measure a device."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("device", help="an id or its beginning")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--kernels", nargs="*", default=[], help="parts of names; none: all")
    options = parser.parse_args()
    description, handle = choose_device(options.device, find_devices())
    session = open_session(description, handle)
    rows = []
    for name, open_launch in _list_launches(session):
        if options.kernels and not any(one in name for one in options.kernels):
            continue
        with open_launch() as launch:
            rows.append({"kernel": name, **measure(session, launch, options.rounds)})
        _print_row(rows[-1])
    if not options.kernels:
        FOLDER.mkdir(parents=True, exist_ok=True)
        result = {
            "device": description.id,
            "order": session.behaviour.order,
            "rounds": options.rounds,
            "share_of_work_groups": SHARE,
            "machine": describe_machine(),
            "rows": rows,
        }
        path = FOLDER / f"{description.id}.json"
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def measure(session: DeviceSession, launch: OpenCLLaunch, rounds: int) -> dict[str, Any]:
    """Time whole launch and windows in turn; give their times per work-group."""
    counts = launch.ndrange.group_counts
    total = launch.ndrange.work_group_count
    middle = GroupBox(start=tuple(n // 2 for n in counts), shape=(1,) * len(counts))
    launch.warm_up(middle)
    mapped = _mapped_kernel(session, launch)
    launch.time_whole()
    start_s = float(np.median([_time(session, launch, None, middle) for _ in range(9)]))
    whole_s, ratios = [], {form: [] for form in FORMS}
    for number in range(rounds):
        launch.settle()
        whole = partial(enqueue, session.queue, launch._whole, launch.ndrange)  # noqa: SLF001 - see _time
        whole_s.append(_count_work(session, whole))
        for turn in range(len(FORMS)):
            form = FORMS[(number + turn) % len(FORMS)]
            place = int(total * ((0.21 + (3 * number + turn) * GOLDEN) % 1) * 0.98)
            box = _choose_box(form, place, round(SHARE * total), counts)
            seconds = _time(session, launch, mapped if form == "mapped" else None, box)
            ratios[form].append((seconds - start_s) / box.work_group_count)
    kept = session.mapped_forms.get((launch.kernel_digest, launch.ndrange.known_local_size))
    usual_s = float(np.median(whole_s)) / total
    return {
        "local_size": launch.ndrange.known_local_size,
        "work_groups": counts,
        "tile": tile_of(counts),
        "whole_s": float(np.median(whole_s)),
        "whole_spread": float(np.percentile(whole_s, 90) / np.percentile(whole_s, 10)),
        "walks_as_whole": launch.walks_as_whole,
        "scale": kept.scale if kept else None,
        "median_over_whole": {one: float(np.median(ratios[one])) / usual_s for one in FORMS},
        "mean_error": {
            one: float(np.mean(np.abs(np.array(ratios[one]) / usual_s - 1))) for one in FORMS
        },
    }


def _mapped_kernel(session: DeviceSession, launch: OpenCLLaunch) -> cl.Kernel:
    """Build the mapped form, also where the device would not ask for it."""
    width = find_row_width(launch.ndrange, DispatchOrder.TILES) or 1
    form = session.mapped_forms.get((launch.kernel_digest, launch.ndrange.known_local_size))
    is_wide = form is not None and form.is_wide
    built = session.mapped_kernel(launch._kernel, launch.ndrange, width, is_wide=is_wide).kernel  # noqa: SLF001 - as the launch does
    for index, argument in enumerate(launch._scratch.arguments):  # noqa: SLF001 - likewise
        built.set_arg(index, argument)
    return built


def _time(
    session: DeviceSession, launch: OpenCLLaunch, mapped: cl.Kernel | None, box: GroupBox
) -> float:
    """Time one window, mapped or as the box it is, once."""
    width = find_row_width(launch.ndrange, DispatchOrder.TILES)
    is_mapped = mapped is not None and can_map(box, launch.ndrange, width)
    kernel = mapped if is_mapped and mapped is not None else launch._window  # noqa: SLF001 - unmapped
    where = row_launch(box, launch.ndrange) if is_mapped else launch.ndrange.work_items_of(box)
    launch._has_run = True  # noqa: SLF001 - its buffers are no longer the originals
    return _count_work(session, partial(launch._enqueue, kernel, *where))  # noqa: SLF001 - plain form too


def _count_work(session: DeviceSession, start: Callable[[], cl.Event]) -> float:
    """Give the processor time that all threads spend on a launch, in seconds."""
    session.queue.finish()
    begin_s = time.process_time()
    start()
    session.queue.finish()
    return time.process_time() - begin_s


def _choose_box(form: str, place: int, work_groups: int, counts: tuple[int, ...]) -> GroupBox:
    if form != "box":
        order = DispatchOrder.TILE_ROWS if form == "mapped" else DispatchOrder.ROWS
        return box_near(place, work_groups, counts, order)
    shape, left = [1] * len(counts), float(work_groups)
    for done, axis in enumerate(sorted(range(len(counts)), key=lambda one: counts[one])):
        shape[axis] = min(counts[axis], max(1, round(left ** (1 / (len(counts) - done)))))
        left = max(1.0, left / shape[axis])
    start, rest = [], place
    for count, extent in zip(counts, shape, strict=True):
        start.append(min(rest % count, count - extent))
        rest //= count
    return GroupBox(start=tuple(start), shape=tuple(shape))


def _list_launches(session: DeviceSession) -> Iterator[tuple[str, Any]]:
    for kernel in KERNELS:
        yield kernel.name, partial(_open_own, session, kernel)
    for name in CORPUS:
        yield name, partial(_open_corpus, session, name)


@contextmanager
def _open_own(session: DeviceSession, kernel: WindowKernel) -> Iterator[OpenCLLaunch]:
    rng = np.random.default_rng(1)
    with ExitStack() as stack:
        arguments: list[Any] = []
        for size in kernel.buffer_bytes:
            content = rng.integers(0, 64, size, dtype=np.uint8)
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            buffer = cl.Buffer(session.context, flags, hostbuf=content)
            stack.callback(buffer.release)
            arguments.append(buffer)
        accesses: list[Access | None] = [
            Access.WRITE if index == kernel.written else Access.READ
            for index in range(len(arguments))
        ]
        arguments += [np.int32(one) for one in kernel.scalars]
        accesses += [None] * len(kernel.scalars)
        source = Kernel(name=kernel.name, source=kernel.source)
        ndrange = NDRange(global_size=kernel.global_size, local_size=kernel.local_size)
        yield stack.enter_context(OpenCLLaunch(session, source, ndrange, arguments, accesses))


@contextmanager
def _open_corpus(session: DeviceSession, name: str) -> Iterator[OpenCLLaunch]:
    [kernel] = find_kernels(name)
    with tempfile.TemporaryDirectory() as folder:
        problem = prepare_launch(
            kernel, {}, local_size=kernel.local_sizes[0], cache_folder=Path(folder)
        ).problem
        with prepared_launch(session, problem, OpenCLLaunch, seed=0) as launch:
            yield launch


def _print_row(row: dict[str, Any]) -> None:
    medians = "  ".join(f"{one} {row['median_over_whole'][one]:.2f}" for one in FORMS)
    errors = "  ".join(f"{row['mean_error'][one]:.0%}" for one in FORMS)
    print(
        f"{row['kernel']:28} {row['whole_s'] * 1e3:6.0f} ms  {medians}  mean errors {errors}"
        f"  scale {row['scale']}  {row['work_groups']} tile {row['tile']}",
        flush=True,
    )


if __name__ == "__main__":
    main()
