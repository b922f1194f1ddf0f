"""Stored observations as evidence, and the evidence models that are calibrated on them.

Samplers since revision 4 take sets of samples as an estimate takes its moments; those before the
first whole run are what a first answer has.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import numpy as np

from kernelcast.analytic.cpu.estimate import REVISION
from kernelcast.models.evidence.calibration import ANSWERING, EvidenceRow, calibrate
from kernelcast.models.evidence.fusion import Kind
from kernelcast.models.evidence.model import (
    ANY,
    BUILT_IN,
    EvidenceModel,
    know_analytic,
    read_moment,
)
from kernelcast.models.evidence.sizes import KnownSize, measure_work
from kernelcast.models.versioned_files import list_versions
from kernelcast.records.device import DeviceKind
from kernelcast.records.machine import MachineDescription, read_peaks
from kernelcast.records.observation import Observation
from kernelcast.training.registry import list_evidence_names
from kernelcast.training.settings import ALL_ROWS, CPU_MODEL, RowFilter
from kernelcast.training.table import FindMachine, keep_newest, read_cpu_model


def read_launches(
    observations: Iterable[Observation], rows: RowFilter = ALL_ROWS
) -> list[Observation]:
    """Choose undisturbed launches of the newest sampler there is, with features and samples; those
    of older CPU models lose their analytic features."""
    by_key = {
        one.key: one
        for one in observations
        if one.samples and one.features is not None and not one.flags
        and rows.takes(one.seconds, one.launch.work_group_count or math.nan)
    }  # fmt: skip
    return [*keep_newest(by_key.values(), Counter(), of_one_sampler=True)]


def choose_moments(one: Observation) -> list[int]:
    """Return the places of the sets that stand for the moments of a first answer."""
    first_run_s = min(one.runs.started_s, default=math.inf)
    own = sorted(
        (sample.window_set, place)
        for place, sample in enumerate(one.samples)
        if sample.multiple == 0 and sample.linear_s and (sample.at_s or 0.0) < first_run_s
    )
    return [place for _, place in own[:2]]


def make_row(
    one: Observation, machine: MachineDescription | None = None, chosen: Sequence[int] | None = None
) -> EvidenceRow:
    """Make evidence of a launch and of some of its sets: those of a first answer unless given."""
    chosen = choose_moments(one) if chosen is None else chosen
    named = one.features.as_dict() if one.features else {}
    features = {name: value for name, value in named.items() if math.isfinite(value)}
    told = features.get("analytic.estimate_s", 0.0)
    works, working_set = measure_work(features)
    kernel = one.launch.kernel
    return EvidenceRow(
        kernel=kernel.label,
        size=KnownSize(
            log_work=works,
            log_seconds=math.log(one.seconds),
            noise=one.runs.noise or 0.0,
            at_s=one.measured_at.timestamp() if one.measured_at else 0.0,
            working_set_bytes=working_set,
        ),
        moments=tuple(
            read_moment(
                one.sample_run(place),
                moment=str(one.samples[place].window_set),
                imbalance=features.get("counters.loop_imbalance_ratio", math.nan),
                indirect=features.get("static.indirect_access_ratio", 0.0),
            )
            for place in chosen
        ),
        plain={Kind.ANALYTIC: math.log(told)} if told > 0 else {},
        runs=tuple(np.log(one.runs.durations_s).tolist()),
        family="/".join(filter(None, (kernel.suite, kernel.application))) or kernel.label,
        device=one.launch.device.id,
        values={
            **features,
            "sampling_s": sum(one.samples[place].sampling_s for place in chosen),
            "work_groups": float(one.launch.work_group_count or math.nan),
            **read_peaks(machine),
        },
    )


def calibrate_evidence(
    observations: Iterable[Observation], find_machine: FindMachine, names: Collection[str] = ()
) -> list[tuple[str, EvidenceModel, list[str]]]:
    """Calibrate a model per device, per runtime, and one for any CPU device, or those named; return
    each with its name before it and the devices that taught it behind."""
    by_name: dict[str, list[Observation]] = {}
    for one in observations:
        machine = find_machine(one.launch.device.id)
        is_cpu = machine is not None and machine.kind is DeviceKind.CPU
        for name in list_evidence_names(one.launch.device.id, is_cpu=is_cpu):
            if not names or name in names:
                by_name.setdefault(name, []).append(one)
    found = []
    for name, rows_of in sorted(by_name.items()):
        launches = read_launches(rows_of, RowFilter())
        kept = sorted(launches, key=lambda one: (one.launch.device.id, one.key))
        if len(kept) < 30 or len({one.launch.kernel.label for one in kept}) < 10:
            continue
        rows = [make_row(one, find_machine(one.launch.device.id)) for one in kept]
        rows = [replace(one, kernel=f"{one.device}/{one.kernel}") for one in rows]
        known = sorted({one.device for one in rows})
        is_shared = name not in {list_evidence_names(one, is_cpu=False)[0] for one in known}
        # What one device alone has taught of its samples holds for no other.
        learners = () if is_shared and len(known) < 2 else ANSWERING
        # A device's own rows tell how far its analytic model is off, others' the corpus.
        runtime = name.partition("/")[2] or ANY
        plain = know_analytic(BUILT_IN, runtime).plain if is_shared else None
        model = calibrate(rows, samplers=(kept[0].sampler,), learners=learners, plain=plain)
        digest = hashlib.sha256("\n".join(one.key for one in kept).encode())
        facts = {
            **model.facts, "data_digest": digest.hexdigest(),
            **{f"version.{key}": one for key, one in list_versions().items()},
        }  # fmt: skip
        if {read_cpu_model(one) for one in kept} == {REVISION}:
            facts[CPU_MODEL] = REVISION
        found.append((name, replace(model, facts=facts), known))
    return found
