"""Computes the analytic features of measured launches anew, by today's CPU model.

``python benchmarks/model_rows.py FOLDER --record pocl --record intel`` writes what lies in
``training_data/modelled``: the launches that are there already or, of a device that has none yet,
launches of ``training_data/measured`` of at least 0.1 s and 256 work-groups, one of each kernel.
FOLDER keeps what was read from source and device, so that the second time, after a change of the
model, takes a minute. Where loops or addresses depend on data, a few work-groups run with counters
on the device named by ``--record``, and their addresses are written down, as `kernelcast collect`
does; the next one named is tried where the first cannot.

Then it calls ``static_estimates.py``, which writes the intervals that are shipped, and tables.
"""

import argparse
import hashlib
import pickle
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import static_estimates

from kernelcast.analytic.cpu.estimate import REVISION, estimate_cpu
from kernelcast.collection.corpus_problems import prepare_launch
from kernelcast.expressions.accesses import ModelledLaunch
from kernelcast.features.analysis import read_facts
from kernelcast.features.vector import CounterSource, StaticSource, combine
from kernelcast.launches.counting import (
    count_exactly,
    count_from_source,
    count_launch,
    summarise_run,
)
from kernelcast.launches.data_store import open_data_store
from kernelcast.launches.machines import read_machine
from kernelcast.launches.modelling.launches import model_launch
from kernelcast.launches.preparing import prepared_launch
from kernelcast.records.errors import KernelcastError
from kernelcast.records.feature_vector import make_vector
from kernelcast.records.machine import MachineDescription
from kernelcast.records.observation import Observation
from kernelcast.records.problem import Problem
from kernelcast.records.software_counters import CounterSample, RecordedAddresses, SoftwareCounters
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.session import DeviceSession, open_session
from kernelcast.training.settings import CPU_MODEL
from kernelcast.training.table import read_observations
from kernelcast.training_data.applications import CorpusKernel, find_kernels
from kernelcast.training_data.parquet import export_parquet

DATA = Path(__file__).resolve().parent.parent / "src/kernelcast/training_data"
MEASURED, MODELLED = DATA / "measured", DATA / "modelled"
SHORTEST_S, FEWEST_GROUPS = 0.1, 256
LARGEST_BYTES = 3e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What the model takes of a launch, whatever the device.

    Parameters
    ----------
    launch : ModelledLaunch
        With recorded addresses where they depend on data.
    counters : SoftwareCounters
        Exact where the source tells all of them, counted on a device else.
    values : dict of str to float
        Features of source and counters.
    """

    launch: ModelledLaunch
    counters: SoftwareCounters
    values: dict[str, float]


class Reader:
    """Reads launches of the corpus once, and keeps what it found."""

    def __init__(self, folder: Path, sessions: Sequence[DeviceSession]) -> None:
        self._folder = folder
        self._sessions = sessions
        self._kernels = {(one.application, one.stem): one for one in find_kernels("*")}
        folder.mkdir(parents=True, exist_ok=True)

    def read(self, one: Observation) -> Snapshot | None:
        """Give what is known of a launch; None where it cannot be had, or not without a device."""
        path = self._folder / f"{name_launch(one)}.pickle"
        if path.exists():
            found: Snapshot = pickle.loads(path.read_bytes())
            return found
        kernel = self._kernels.get((one.launch.kernel.application, one.launch.kernel.name))
        if kernel is None:
            return None
        try:
            snapshot = self._take(self._prepare(kernel, one))
        except KernelcastError as error:
            print(f"{one.launch.kernel.label}: {error}", flush=True)
            return None
        if snapshot is not None:
            path.write_bytes(pickle.dumps(snapshot))
        return snapshot

    def _prepare(self, kernel: CorpusKernel, one: Observation) -> Problem:
        ndrange = one.launch.ndrange
        assert ndrange is not None
        assert ndrange.local_size is not None
        return prepare_launch(
            kernel,
            {kernel.size.parameter: int(one.launch.parameters[kernel.size.parameter])},
            local_size=ndrange.local_size,
            cache_folder=self._folder / "inputs",
        ).problem

    def _take(self, problem: Problem) -> Snapshot | None:
        facts = read_facts(problem.kernel)
        derived = count_from_source(facts, problem, problem.ndrange)
        counters, addresses = count_exactly(facts, problem, derived), None
        if counters is None:
            counted = self._count(problem)
            # What no device can count is guessed from the source, as in a collection.
            counters = derived if counted is None else summarise_run(problem, *counted)
            addresses = None if counted is None else counted[1]
        vector = combine(
            StaticSource(facts=facts, problem=problem),
            CounterSource(counters=counters, facts=facts),
        )
        return Snapshot(
            launch=model_launch(problem, counters=counters, recorded=addresses),
            counters=counters,
            values=vector.as_dict(),
        )

    def _count(self, problem: Problem) -> tuple[CounterSample, RecordedAddresses] | None:
        """Count on the first device whose compiler takes the copy that counts."""
        for session in self._sessions if problem.buffer_bytes <= LARGEST_BYTES else ():
            try:
                with prepared_launch(session, problem, seed=0) as launch:
                    return count_launch(launch, problem.kernel)
            except KernelcastError as error:
                print(f"{problem.name}: {str(error).splitlines()[0]}", flush=True)
        return None


def name_launch(one: Observation) -> str:
    """Name a launch by kernel, index space and parameters."""
    launch = one.launch
    key = repr((launch.kernel.digest, launch.ndrange, sorted(launch.parameters.items())))
    return f"{launch.kernel.name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def choose_rows(rows: Iterable[Observation]) -> list[Observation]:
    """Choose one row of each kernel of a device."""
    by_kernel: dict[str, list[Observation]] = defaultdict(list)
    for one in rows:
        groups = one.launch.work_group_count or 0
        if one.features is not None and one.seconds >= SHORTEST_S and groups >= FEWEST_GROUPS:
            by_kernel[one.launch.kernel.label].append(one)
    return [
        min(several, key=lambda one: one.launch.work_group_count or 0)
        for several in by_kernel.values()
    ]


def model_rows(
    rows: Iterable[Observation], reader: Reader, machine: MachineDescription
) -> Iterator[Observation]:
    """Give rows with the features of today's model."""
    for one in rows:
        snapshot = reader.read(one)
        if snapshot is None or one.features is None:
            continue
        try:
            analytic = estimate_cpu(snapshot.launch, machine)
        except KernelcastError:
            continue
        stored = one.features.as_dict()
        compiler = {name: one for name, one in stored.items() if name.startswith("compiler.")}
        values = {**compiler, **snapshot.values, **combine(analytic).as_dict()}
        yield replace(
            one,
            features=make_vector(values, one.features.schema),
            samples=(),
            versions={**one.versions, CPU_MODEL: str(REVISION)},
        )


def write_rows(rows: list[Observation], path: Path) -> None:
    """Write rows into a Parquet file."""
    with (
        tempfile.TemporaryDirectory() as folder,
        open_data_store(Path(folder) / "rows.sqlite") as store,
    ):
        store.add_many(rows)
        export_parquet(store, path)


def main() -> None:
    """Rewrite the modelled rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--record", action="append", default=[], metavar="DEVICE")
    parser.add_argument("--device", action="append", default=[], metavar="ID")
    parser.add_argument("--into", type=Path, default=MODELLED)
    options = parser.parse_args()
    devices = find_devices() if options.record else ()
    sessions = [open_session(*choose_device(one, devices)) for one in options.record]
    reader = Reader(options.folder, sessions)
    for path in sorted(MEASURED.glob("*.parquet")):
        if options.device and path.stem not in options.device:
            continue
        target = MODELLED / path.name
        rows = (
            [*read_observations([target])]
            if target.exists()
            else choose_rows(read_observations([path]))
        )
        machine = read_machine(path.with_suffix(".yaml"))
        found = [*model_rows(rows, reader, machine)]
        if found:
            write_rows(found, options.into / path.name)
        kernels = len({one.launch.kernel.label for one in found})
        print(f"{path.stem}: {len(found)} of {len(rows)} rows, {kernels} kernels", flush=True)
    if not options.device and options.into == MODELLED:
        static_estimates.main()


if __name__ == "__main__":
    main()
