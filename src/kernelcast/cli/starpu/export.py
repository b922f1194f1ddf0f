"""Runs ``kernelcast starpu export``."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from kernelcast.cli.progress_bar import progress_bar
from kernelcast.cli.terminal import ExitStatus, make_table, show, show_json, show_line
from kernelcast.launches.data_store import open_data_store
from kernelcast.launches.settings import DEFAULT_COVERAGE, make_settings
from kernelcast.records.errors import InputError
from kernelcast.reports.numbers import format_seconds
from kernelcast.scheduling.starpu import export
from kernelcast.scheduling.starpu.codelet_file import Codelet, read_codelets
from kernelcast.scheduling.starpu.estimated_now import EstimatesNow
from kernelcast.scheduling.starpu.records import Worker, parse_worker
from kernelcast.scheduling.starpu.times import (
    EstimateFiles,
    StoredTimes,
    TimesFiles,
    TimeSource,
    Wanted,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """The command line of ``kernelcast starpu export``; fields are its options."""

    codelet_files: tuple[Path, ...]
    devices: Mapping[str, str]
    estimate_files: tuple[Path, ...]
    observed: bool
    place: str | None
    times_files: tuple[Path, ...]
    folder: Path | None
    host: str | None
    samples: int
    budget: float
    timeout_s: float
    as_json: bool

    def codelets(self) -> list[Codelet]:
        """Read the codelets, with the devices named on the command line."""
        devices = {parse_worker(name): device for name, device in self.devices.items()}
        found: dict[str, Codelet] = {}
        for path in self.codelet_files:
            for one in read_codelets(path):
                if one.symbol in found:
                    msg = f"{path}: codelet {one.symbol} is in another file too; keep one"
                    raise InputError(msg)
                found[one.symbol] = _put_devices(one, devices)
        known = {place.worker for one in found.values() for place in one.workers}
        for worker in devices:
            if worker not in known:
                msg = f"--device {worker}: no codelet has that worker; there are " + ", ".join(
                    map(str, sorted(known))
                )
                raise InputError(msg)
        return list(found.values())


def run_export(request: ExportRequest) -> ExitStatus:
    """Find all times, write all files, show what they hold."""
    codelets = request.codelets()
    folder = request.folder or export.default_folder()
    host = request.host or export.default_host()
    with ExitStack() as stack:
        tell = stack.enter_context(progress_bar(is_wanted=not request.as_json))
        total = sum(len(one.sizes) * len(one.workers) for one in codelets)
        done = -1

        def report(wanted: Wanted) -> None:
            nonlocal done
            done += 1
            tell(done, total, wanted.label)

        sources = _open_sources(request, stack)
        models = [
            export.make_model(one, sources, samples=request.samples, report=report)
            for one in codelets
        ]
    # Files are written when all times are known: a failure leaves StarPU's folder as it was.
    paths = [export.save_model(one.model, folder, host=host) for one in models]
    _present(models, paths, request)
    return ExitStatus.ANSWERED


def _open_sources(request: ExportRequest, stack: ExitStack) -> list[TimeSource]:
    sources: list[TimeSource] = [TimesFiles(request.times_files)]
    if request.observed:
        store = stack.enter_context(open_data_store(request.place, must_exist=True))
        sources.append(StoredTimes(store))
    if request.estimate_files:
        sources.append(EstimateFiles(request.estimate_files))
    else:
        settings = make_settings(
            budget=request.budget, coverage=DEFAULT_COVERAGE, measured_runs=None, seed=0
        )
        sources.append(EstimatesNow(settings, timeout_s=request.timeout_s))
    return sources


def _put_devices(codelet: Codelet, devices: Mapping[Worker, str]) -> Codelet:
    workers = tuple(
        replace(one, device_id=devices.get(one.worker, one.device_id)) for one in codelet.workers
    )
    return replace(codelet, workers=workers)


def _present(models: list[export.ExportedModel], paths: list[Path], request: ExportRequest) -> None:
    rows = [(one, path) for model, path in zip(models, paths, strict=True) for one in model.times]
    if request.as_json:
        show_json([_describe(one, path) for one, path in rows])
        return
    table = make_table("codelet", "worker", "size", "footprint", "time", "+-", "from", "device")
    for one, _ in rows:
        table.add_row(
            one.wanted.symbol,
            str(one.wanted.worker),
            one.wanted.size.label,
            f"{one.wanted.size.footprint:08x}",
            format_seconds(one.time.seconds),
            format_seconds(one.time.deviation_s) if one.time.deviation_s else "",
            one.time.origin,
            one.time.device_id,
        )
    show(table)
    for path in paths:
        show_line(f"wrote {path}")


def _describe(one: export.ExportedTime, path: Path) -> dict[str, object]:
    return {
        "codelet": one.wanted.symbol,
        "worker": str(one.wanted.worker),
        "parameters": dict(one.wanted.size.parameters),
        "footprint": f"{one.wanted.size.footprint:08x}",
        "size_bytes": one.wanted.size.size_bytes,
        "flops": one.wanted.size.flops,
        "seconds": one.time.seconds,
        "deviation_seconds": one.time.deviation_s,
        "origin": one.time.origin,
        "device_id": one.time.device_id or None,
        "file": str(path),
    }
