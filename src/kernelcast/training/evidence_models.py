"""Calibrates evidence models of stored launches: for a device, a runtime, and any CPU."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from kernelcast.analytic.cpu.estimate import REVISION
from kernelcast.models.evidence.calibration import ANSWERING, EvidenceRow, calibrate
from kernelcast.models.evidence.model import BUILT_IN, EvidenceModel
from kernelcast.models.evidence.stored import ANY, know_analytic, publish_evidence
from kernelcast.models.versioned_files import VersionedFiles, list_versions
from kernelcast.records.device import DeviceKind
from kernelcast.records.machine import MachineDescription
from kernelcast.records.observation import Observation
from kernelcast.training.analytic_errors import CPU_MODEL, is_of_today
from kernelcast.training.evidence import StoredLaunch, make_row, read_launches, takes
from kernelcast.training.peaks import UNKNOWN, read_peaks
from kernelcast.training.registry import list_evidence_names
from kernelcast.training.settings import RowFilter
from kernelcast.training.table import read_cpu_model

FindMachine = Callable[[str], MachineDescription | None]
"""Gives a device's description by its id."""
_ROWS = RowFilter()
_FEWEST_KERNELS = 10
_FEWEST_ROWS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedEvidence:
    """An evidence model, and what it was calibrated with."""

    name: str
    """What it is published under."""
    model: EvidenceModel
    """The model."""
    devices: tuple[str, ...]
    """Ids of the devices, sorted."""

    def publish(self, registry: VersionedFiles) -> str:
        """Add it to a registry, where it becomes the latest; give its version."""
        return publish_evidence(registry, self.name, self.model)


class EvidenceRows:
    """Launches of observations as evidence, by device: each of its newest sampler."""

    def __init__(self, observations: Iterable[Observation]) -> None:
        by_device: dict[str, list[Observation]] = {}
        for one in observations:
            by_device.setdefault(one.launch.device.id, []).append(one)
        self._launches: dict[str, list[StoredLaunch]] = {}
        for name, ours in by_device.items():
            found = [one for one in read_launches(ours) if takes(_ROWS, one.observation)]
            if found:
                self._launches[name] = sorted(found, key=lambda one: one.observation.key)

    def calibrate(self, find_machine: FindMachine) -> list[CalibratedEvidence]:
        """Calibrate a model per device, per runtime, and one for any CPU device."""
        by_name: dict[str, list[str]] = {}
        for device_id in sorted(self._launches):
            machine = find_machine(device_id)
            is_cpu = machine is not None and machine.kind is DeviceKind.CPU
            for name in list_evidence_names(device_id, is_cpu=is_cpu):
                by_name.setdefault(name, []).append(device_id)
        found = (
            self._calibrate(name, devices, find_machine)
            for name, devices in sorted(by_name.items())
        )
        return [one for one in found if one is not None]

    def _calibrate(
        self, name: str, devices: Sequence[str], find_machine: FindMachine
    ) -> CalibratedEvidence | None:
        launches = [(device, one) for device in devices for one in self._launches[device]]
        newest = max(one.observation.sampler for _, one in launches)
        kept = [pair for pair in launches if pair[1].observation.sampler == newest]
        kernels = {one.kernel for _, one in kept}
        if len(kept) < _FEWEST_ROWS or len(kernels) < _FEWEST_KERNELS:
            return None
        machines = {device: find_machine(device) for device in devices}
        peaks = {
            name: UNKNOWN if one is None else read_peaks(one) for name, one in machines.items()
        }
        rows = [make_row(one, peaks=peaks[device]) for device, one in kept]
        # Of rows with features of several revisions of the CPU model the newer ones count.
        models = [read_cpu_model(one.observation) for _, one in kept]
        rows = [
            row if model == max(models) else _forget_analytic(row)
            for row, model in zip(rows, models, strict=True)
        ]
        rows = [replace(one, kernel=f"{one.device}/{one.kernel}") for one in rows]
        known = sorted({one.device for one in rows})
        is_shared = name not in {list_evidence_names(one, is_cpu=False)[0] for one in devices}
        # What one device alone has taught of its samples holds for no other.
        learners = () if is_shared and len(known) < 2 else ANSWERING
        # A device's own rows tell how far its analytic model is off, others' the corpus.
        runtime = name.partition("/")[2] or ANY
        plain = know_analytic(BUILT_IN, runtime).plain if is_shared else None
        model = calibrate(rows, samplers=(newest,), learners=learners, plain=plain)
        digest = hashlib.sha256("\n".join(one.observation.key for _, one in kept).encode())
        facts = {
            **model.facts, "data_digest": digest.hexdigest(),
            **{f"version.{key}": one for key, one in list_versions().items()},
        }  # fmt: skip
        if all(is_of_today(one.observation) for _, one in kept):
            facts[CPU_MODEL] = REVISION
        return CalibratedEvidence(
            name=name, model=replace(model, facts=facts), devices=tuple(known)
        )


def _forget_analytic(row: EvidenceRow) -> EvidenceRow:
    values = {key: one for key, one in row.values.items() if not key.startswith("analytic.")}
    return replace(row, plain={}, values=values)
