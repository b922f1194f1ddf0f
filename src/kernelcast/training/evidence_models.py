"""Calibrates evidence models of stored launches, and fuses what was known of each."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kernelcast.analytic.cpu.estimate import REVISION
from kernelcast.models.evidence.calibration import (
    FOLDS,
    calibrate,
    fit_variances,
    gather_samples,
)
from kernelcast.models.evidence.correction import replace_reference
from kernelcast.models.evidence.fusion import fuse
from kernelcast.models.evidence.model import EvidenceModel
from kernelcast.models.evidence.piece import FusedEstimate
from kernelcast.models.evidence.registry import publish_evidence
from kernelcast.models.grouping import divide_groups, number_groups
from kernelcast.models.versioned_files import VersionedFiles
from kernelcast.records.device import DeviceKind
from kernelcast.records.machine import MachineDescription
from kernelcast.records.observation import Observation
from kernelcast.records.training_table import TrainingTable
from kernelcast.training.analytic_errors import CPU_MODEL, is_of_today
from kernelcast.training.evidence import StoredLaunch, make_rows, read_launches, takes
from kernelcast.training.registry import list_evidence_names
from kernelcast.training.settings import RowFilter

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
    """Launches of observations as evidence, by device: each of its newest sampler.

    Parameters
    ----------
    observations : iterable of Observation
        Those that do not count are left out.
    """

    def __init__(self, observations: Iterable[Observation]) -> None:
        by_device: dict[str, list[Observation]] = {}
        for one in observations:
            by_device.setdefault(one.launch.device.id, []).append(one)
        self._launches = {
            name: found for name, ours in by_device.items() if (found := read_launches(ours))
        }

    def calibrate(self, find_machine: FindMachine) -> list[CalibratedEvidence]:
        """Calibrate a model per device, per runtime, and one for any CPU device.

        Parameters
        ----------
        find_machine : callable
            Tells which device is a CPU; of those that it does not know the last has no rows.

        Returns
        -------
        list of CalibratedEvidence
            Those that there are enough launches for.
        """
        by_name: dict[str, list[str]] = {}
        for device_id in sorted(self._launches):
            machine = find_machine(device_id)
            is_cpu = machine is not None and machine.kind is DeviceKind.CPU
            for name in list_evidence_names(device_id, is_cpu=is_cpu):
                by_name.setdefault(name, []).append(device_id)
        found = (self._calibrate(name, devices) for name, devices in sorted(by_name.items()))
        return [one for one in found if one is not None]

    def fuse(self, table: TrainingTable) -> TrainingTable:
        """Put what samples say, fused, in the place of a table's linear times.

        Variances are learned from other kernels than a row's. Rows whose samples no moment can
        be made of keep what they have.

        Parameters
        ----------
        table : TrainingTable
            Rows of one device or of several.
        """
        fused: dict[str, FusedEstimate] = {}
        for device_id in sorted(set(table.devices.tolist())):
            launches = self._launches.get(device_id, [])
            fused |= _fuse_held_out(launches) if _suffices(launches) else {}
        known = np.array([key in fused for key in table.keys.tolist()], dtype=np.bool_)
        if not known.any():
            return table
        some = table.take(known)
        replaced = replace_reference(some, [fused[key] for key in some.keys.tolist()])
        linear_s, linear_error = table.linear_s.copy(), table.linear_error.copy()
        linear_s[known], linear_error[known] = replaced.linear_s, replaced.linear_error
        return table.assign(linear_s=linear_s, linear_error=linear_error)

    def _calibrate(self, name: str, devices: Sequence[str]) -> CalibratedEvidence | None:
        launches = [(device, one) for device in devices for one in self._launches[device]]
        newest = max(one.observation.sampler for _, one in launches)
        kept = [
            (device, one)
            for device, one in launches
            if one.observation.sampler == newest and takes(_ROWS, one.observation)
        ]
        if not _suffices([one for _, one in kept]):
            return None
        rows = [
            replace(row, kernel=f"{device}/{row.kernel}")
            for (device, _), row in zip(kept, make_rows(one for _, one in kept), strict=True)
        ]
        model = calibrate(rows, samplers=(newest,))
        if all(is_of_today(one.observation) for _, one in kept):
            model = replace(model, facts={**model.facts, CPU_MODEL: REVISION})
        return CalibratedEvidence(
            name=name, model=model, devices=tuple(sorted({device for device, _ in kept}))
        )


def _suffices(launches: Sequence[StoredLaunch]) -> bool:
    counting = [one for one in launches if takes(_ROWS, one.observation)]
    kernels = {one.kernel for one in counting}
    return len(counting) >= _FEWEST_ROWS and len(kernels) >= _FEWEST_KERNELS


def _fuse_held_out(launches: Sequence[StoredLaunch]) -> dict[str, FusedEstimate]:
    """Fuse what samples say of each launch, by variances of other kernels; by key."""
    rows = make_rows(launches)
    groups = number_groups(np.array([one.kernel for one in rows], dtype=np.object_))
    counts = np.array([takes(_ROWS, one.observation) for one in launches])
    found: dict[str, FusedEstimate] = {}
    for part in divide_groups(groups, FOLDS):
        seen = part.train[counts[part.train]]
        model = fit_variances([rows[place] for place in seen], groups[seen])
        for place in part.test.tolist():
            if rows[place].moments:
                fused = fuse(gather_samples(model, rows[place], ()))
                found[launches[place].observation.key] = fused
    return found
