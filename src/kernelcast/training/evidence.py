"""Stored observations as evidence, and the evidence models that are calibrated on them.

Of a row that a sampler before revision 4 has taken, in the order of its measurements: the
sampler's set 0; a whole run that is not kept; pairs of set 0 (multiples 1 to 5), a run, the
sampler's set 1, a run, pairs of set 1, a run, the sampler's set 2, the other runs. Later samplers
take sets as an estimate takes its moments; those before the first whole run are what a first
answer has.
"""

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from kernelcast.analytic.cpu.estimate import REVISION
from kernelcast.models.evidence.calibration import ANSWERING, EvidenceRow, calibrate
from kernelcast.models.evidence.fusion import Kind
from kernelcast.models.evidence.model import (
    BUILT_IN,
    MOMENT_FORM,
    EvidenceModel,
    SampledMoment,
    read_moment,
)
from kernelcast.models.evidence.sizes import KnownSize, measure_work
from kernelcast.models.evidence.stored import ANY, know_analytic, publish_evidence
from kernelcast.models.versioned_files import VersionedFiles, list_versions
from kernelcast.records.device import DeviceKind
from kernelcast.records.machine import MachineDescription, read_peaks
from kernelcast.records.observation import Observation
from kernelcast.training.analytic_errors import CPU_MODEL, is_of_today
from kernelcast.training.registry import list_evidence_names
from kernelcast.training.settings import ALL_ROWS, RowFilter
from kernelcast.training.table import FindMachine, read_cpu_model

SetKey = tuple[int, int]
"""Multiple and window set of a set of samples; the sampler's own have multiple 0."""
SAMPLER_OF_MOMENTS = 4
"""The first revision whose sets are moments as an estimate takes them."""
_TAKEN = {
    0: ("before any run", "after two runs", "after four runs"),
    1: ("after one run", "after three runs"),
}
"""When sets of samplers before that were taken: the sampler's own, and pairs."""
_EVEN_PAIRS: tuple[SetKey, ...] = ((3, 0), (3, 1))
_OWN_SETS: tuple[SetKey, ...] = ((0, 0), (0, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLaunch:
    observation: Observation
    kernel: str
    places: Mapping[SetKey, int]
    """Place of each set of samples that a line can be drawn through."""
    features: Mapping[str, float]

    @property
    def is_even(self) -> bool:
        """What the sampler's first set has found, by its pilot or from the source."""
        return self.observation.samples[0].is_even


def read_launches(
    observations: Iterable[Observation], rows: RowFilter = ALL_ROWS
) -> list[StoredLaunch]:
    """Choose undisturbed launches of the newest sampler there is, with features and samples."""
    by_key = {one.key: one for one in observations if _counts(one, rows)}
    newest = max((one.sampler for one in by_key.values()), default=0)
    return [_read(one) for one in by_key.values() if one.sampler == newest]


def _counts(one: Observation, rows: RowFilter) -> bool:
    is_sound = bool(one.samples) and one.features is not None and not one.flags
    return is_sound and takes(rows, one)


def takes(rows: RowFilter, one: Observation) -> bool:
    count = one.launch.work_group_count
    return rows.takes(one.seconds, math.nan if count is None else count)


def _read(one: Observation) -> StoredLaunch:
    named = one.features.as_dict() if one.features else {}
    return StoredLaunch(
        observation=one,
        kernel=one.launch.kernel.label,
        places={
            (sample.multiple, sample.window_set): place
            for place, sample in enumerate(one.samples)
            if sample.linear_s
        },
        features={name: value for name, value in named.items() if math.isfinite(value)},
    )


def choose_moments(row: StoredLaunch) -> tuple[SetKey, ...]:
    """Return the sets that stand for the moments of a first answer."""
    one = row.observation
    if one.sampler >= SAMPLER_OF_MOMENTS:
        first_run_s = min(one.runs.started_s, default=math.inf)
        own = sorted(
            key for key, place in row.places.items()
            if key[0] == 0 and (one.samples[place].at_s or 0.0) < first_run_s
        )  # fmt: skip
        return tuple(own[:2])
    wanted = _EVEN_PAIRS if row.is_even else _OWN_SETS
    for keys in (wanted, _OWN_SETS):
        if all(one in row.places for one in keys):
            return keys
    return tuple(key for key in _OWN_SETS if key in row.places)


def make_row(
    row: StoredLaunch,
    keys: Sequence[SetKey] | None = None,
    machine: MachineDescription | None = None,
) -> EvidenceRow:
    """Make evidence of a launch and of some of its sets: those of a first answer unless given."""
    one = row.observation
    told = row.features.get("analytic.estimate_s", math.nan)
    chosen = choose_moments(row) if keys is None else keys
    kernel = one.launch.kernel
    figures = {
        "sampling_s": sum(one.samples[row.places[key]].sampling_s for key in chosen),
        "work_groups": float(one.launch.work_group_count or math.nan),
        **asdict(read_peaks(machine)),
    }
    return EvidenceRow(
        kernel=row.kernel,
        size=make_size(row),
        moments=tuple(_make_moment(row, key) for key in chosen),
        plain={Kind.ANALYTIC: math.log(told)} if told > 0 else {},
        runs=tuple(np.log(one.runs.durations_s).tolist()),
        family="/".join(filter(None, (kernel.suite, kernel.application))) or kernel.label,
        device=one.launch.device.id,
        values={**row.features, **figures},
    )


def _make_moment(row: StoredLaunch, key: SetKey) -> SampledMoment:
    if row.observation.sampler >= SAMPLER_OF_MOMENTS:
        form, moment = MOMENT_FORM, str(key[1])
    else:
        form = "pair" if key[0] else ("first set" if key[1] == 0 else "set")
        moment = _TAKEN[min(key[0], 1)][key[1]]
    return read_moment(
        row.observation.sample_run(row.places[key]),
        moment=moment,
        form=form,
        imbalance=row.features.get("counters.loop_imbalance_ratio", math.nan),
        indirect=row.features.get("static.indirect_access_ratio", 0.0),
    )


def make_size(row: StoredLaunch) -> KnownSize:
    one = row.observation
    works, working_set = measure_work(row.features)
    return KnownSize(
        log_work=works,
        log_seconds=math.log(one.seconds),
        noise=one.runs.noise or 0.0,
        at_s=one.measured_at.timestamp() if one.measured_at else 0.0,
        working_set_bytes=working_set,
    )


_ROWS = RowFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedEvidence:
    name: str
    model: EvidenceModel
    devices: tuple[str, ...]

    def publish(self, registry: VersionedFiles) -> str:
        """Add it to a registry, where it becomes the latest; give its version."""
        return publish_evidence(registry, self.name, self.model)


def calibrate_evidence(
    observations: Iterable[Observation], find_machine: FindMachine, names: Collection[str] = ()
) -> list[CalibratedEvidence]:
    """Calibrate a model per device, per runtime, and one for any CPU device; or those named."""
    by_device: dict[str, list[Observation]] = {}
    for one in observations:
        by_device.setdefault(one.launch.device.id, []).append(one)
    by_name: dict[str, list[StoredLaunch]] = {}
    for device_id, own in sorted(by_device.items()):
        launches = [one for one in read_launches(own) if takes(_ROWS, one.observation)]
        machine = find_machine(device_id)
        is_cpu = machine is not None and machine.kind is DeviceKind.CPU
        for name in list_evidence_names(device_id, is_cpu=is_cpu):
            if launches and (not names or name in names):
                of_name = by_name.setdefault(name, [])
                of_name += sorted(launches, key=lambda one: one.observation.key)
    found = (_calibrate(name, launches, find_machine) for name, launches in sorted(by_name.items()))
    return [one for one in found if one is not None]


def _calibrate(
    name: str, launches: Sequence[StoredLaunch], find_machine: FindMachine
) -> CalibratedEvidence | None:
    newest = max(one.observation.sampler for one in launches)
    kept = [one for one in launches if one.observation.sampler == newest]
    kernels = {one.kernel for one in kept}
    if len(kept) < 30 or len(kernels) < 10:
        return None
    rows = [make_row(one, machine=find_machine(one.observation.launch.device.id)) for one in kept]
    # Of rows with features of several revisions of the CPU model the newer ones count.
    models = [read_cpu_model(one.observation) for one in kept]
    for place, (row, revision) in enumerate(zip(rows, models, strict=True)):
        values, told = row.values, row.plain
        if revision < max(models):
            values, told = (
                {key: one for key, one in values.items() if not key.startswith("analytic.")},
                {},
            )
        rows[place] = replace(row, kernel=f"{row.device}/{row.kernel}", plain=told, values=values)
    known = sorted({one.device for one in rows})
    is_shared = name not in {list_evidence_names(one, is_cpu=False)[0] for one in known}
    # What one device alone has taught of its samples holds for no other.
    learners = () if is_shared and len(known) < 2 else ANSWERING
    # A device's own rows tell how far its analytic model is off, others' the corpus.
    runtime = name.partition("/")[2] or ANY
    plain = know_analytic(BUILT_IN, runtime).plain if is_shared else None
    model = calibrate(rows, samplers=(newest,), learners=learners, plain=plain)
    digest = hashlib.sha256("\n".join(one.observation.key for one in kept).encode())
    facts = {
        **model.facts, "data_digest": digest.hexdigest(),
        **{f"version.{key}": one for key, one in list_versions().items()},
    }  # fmt: skip
    if all(is_of_today(one.observation) for one in kept):
        facts[CPU_MODEL] = REVISION
    return CalibratedEvidence(name=name, model=replace(model, facts=facts), devices=tuple(known))
