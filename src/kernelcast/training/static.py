"""Reads what the static models learn from, which need no samples, from stored observations."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelcast.analytic.cpu.estimate import REVISION
from kernelcast.models.static.describing import ESTIMATE
from kernelcast.models.static.fitting import StaticRow
from kernelcast.models.static.stored import name_runtime
from kernelcast.records.observation import Observation
from kernelcast.training.reading import read_observations

CPU_MODEL = "cpu_model"
"""Key among an observation's versions: the revision of the CPU model its features are of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredLaunch:
    """An observation that the static model can learn from."""

    row: StaticRow
    """What it learns from."""
    observation: Observation
    """The whole of it."""


def read_launches(sources: Sequence[str | Path]) -> list[MeasuredLaunch]:
    """Read undisturbed observations whose analytic features are of today's CPU model.

    Parameters
    ----------
    sources : sequence of str or Path
        Stores, Parquet files, or folders of them.
    """
    return [*choose_launches(read_observations(sources))]


def choose_launches(observations: Iterable[Observation]) -> Iterator[MeasuredLaunch]:
    """Choose the observations that have an analytic time of today's model."""
    for one in observations:
        features = {} if one.features is None else one.features.as_dict()
        is_of_today = one.versions.get(CPU_MODEL) == str(REVISION)
        if not is_of_today or not features.get(ESTIMATE, 0.0) > 0:
            continue
        kernel = one.launch.kernel
        yield MeasuredLaunch(
            row=StaticRow(
                kernel=f"{kernel.suite}/{kernel.application}/{kernel.name}",
                features={
                    name: value
                    for name, value in features.items()
                    if not name.startswith("sampled.")
                },
                seconds=one.seconds,
                runtime=name_runtime(one.launch.device.platform),
                device=one.launch.device.id,
            ),
            observation=one,
        )
