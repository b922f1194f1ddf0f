"""What pages tell of accuracy: launches beside their predictions, models in use, results of jobs.

Two predictions need no model: the linear model's, which is stored with the samples, and the one
that observations of the same launch gave just before its newest one, as the tier ``history``
answers. A launch that was observed 100,000 times counts as one that was observed twice does.
"""

from dataclasses import replace
from statistics import fmean, median
from typing import Any, Final

# The service asks no room below the predictor: what it shows of models comes from here.
from kernelcast.models.time_models import ABLATION as ABLATION
from kernelcast.models.time_models import HYBRID
from kernelcast.models.time_models import RIVALS as RIVALS
from kernelcast.models.time_models import list_models as list_models
from kernelcast.models.validation.comparison import Comparison as Comparison
from kernelcast.models.validation.comparison import DeviceComparison as DeviceComparison
from kernelcast.models.validation.comparison import ExplainedError as ExplainedError
from kernelcast.models.validation.comparison import compare_validated as compare_validated
from kernelcast.models.validation.comparison import comparison_from_json as comparison_from_json
from kernelcast.models.validation.report import ValidationReport as ValidationReport
from kernelcast.models.validation.report import report_from_json as report_from_json
from kernelcast.models.versioned_files import VersionedFiles
from kernelcast.predictor.answering.launch_history import LaunchHistory, Seen
from kernelcast.predictor.answering.trained_models import find_shipped
from kernelcast.records.contention import DEFAULT_COVERAGE
from kernelcast.records.observation import ObservationFlag, Origin
from kernelcast.training.registry import choose_registry
from kernelcast.training_data.store import Selection, Store
from kernelcast.training_data.store.schema import load_ndrange, load_time

# A first launch holds compilation, a busy machine's times hold other people's work; imported rows
# are of other machines.
_JUDGED: Final = Selection(
    origins=(Origin.COLLECTED, Origin.OBSERVED),
    without_flags=frozenset(
        {ObservationFlag.FIRST_LAUNCH, ObservationFlag.CONTAMINATED, ObservationFlag.DOUBTED}
    ),
)


# Newest observations of a launch that its history is drawn of, and its median and noise.
_DRAWN, _SUMMED = 100, 20
_COLUMNS = (
    "launch_key", "suite", "application", "kernel", "device_id", "ndrange", "seconds", "noise",
    "run_count", "measured_at_us", "linear_s",
)  # fmt: skip


def read_kernel_launches(store: Store, kernel: str) -> list[dict[str, Any]]:
    """Read the launches of a ``suite/application/kernel``, those that were measured last first.

    Of each: how many observations, their median `seconds`, half the 10-90 % spread of their times
    over it (`noise`; of a single one its own), `when` the newest was measured, the linear model's
    time from the newest samples (`linear_s`), the newest `times` with their moments, what
    observations said just before the newest one, with its time (`remembered`), and when it became
    certain that the launch takes another time than before (`shifted_at`).
    """
    wanted = replace(_JUDGED, kernels=(kernel.rpartition("/")[2],))
    by_launch: dict[str, list[Any]] = {}
    for row in store.read_launches(wanted, _COLUMNS, most=_DRAWN):
        if "/".join(filter(None, (row.suite, row.application, row.kernel))) == kernel:
            by_launch.setdefault(row.launch_key, []).append(row)
    newest_first = sorted(by_launch.values(), key=lambda rows: -(rows[-1].measured_at_us or 0))
    found = []
    for rows in newest_first[:1000]:
        newest = rows[-1]
        linear_s = next((one.linear_s for one in reversed(rows) if one.linear_s is not None), 0.0)
        drawn = [one for one in rows if one.place <= _DRAWN]
        summed = drawn[-_SUMMED:]
        times, tenth = sorted(one.seconds for one in summed), (len(summed) - 1) // 10
        noises = [one.noise for one in summed if one.run_count > 1 and one.noise is not None]
        noise = fmean(noises) if noises else None
        if len(times) > 1:
            noise = (times[-1 - tenth] - times[tenth]) / 2 / median(times)
        # The newest one is answered from those before. 1,000 launches take 0.25 s so, and a lasting
        # shift is seen after three to six.
        history, remembered, shifted_at = LaunchHistory(), None, None
        for place, one in enumerate(told := drawn[-12:], 1):
            when, shifts = load_time(one.measured_at_us), history.shifts
            if place == len(told) and (answer := history.answer(DEFAULT_COVERAGE)) is not None:
                remembered = (answer, one.seconds)
            own = one.noise if one.run_count > 1 else None
            history.add(Seen(seconds=one.seconds, noise=own, when=when))
            if history.shifts > shifts:
                shifted_at = when
        ndrange = load_ndrange(newest.ndrange)
        found.append({
            "device_id": newest.device_id,
            "global_size": None if ndrange is None else ndrange.global_size,
            "observations": len(summed), "seconds": median(times), "noise": noise,
            "when": load_time(newest.measured_at_us),
            "linear_s": linear_s if linear_s > 0 else None,
            "times": [
                (when, one.seconds) for one in drawn if (when := load_time(one.measured_at_us))
            ],
            "remembered": remembered, "shifted_at": shifted_at,
        })  # fmt: skip
    return found


def find_ablation(report: ValidationReport, device: str) -> list[tuple[str, DeviceComparison]]:
    """Compare the hybrid without each feature group that was left out with the whole one."""
    if HYBRID not in report.models:
        return []
    without = f"{HYBRID}_without_"
    found = [
        (name.removeprefix(without), one)
        for name in report.models
        if name.startswith(without)
        for one in compare_validated(report, HYBRID, name).devices
        if one.device == device and one.difference is not None
    ]
    return sorted(found, key=lambda one: -(one[1].difference or 0.0))


def list_used_models(registry: str | None = None) -> list[dict[str, Any]]:
    """List the models in use: those of the registry, then those shipped that it does not have.

    A name is ``model/device``, or the model alone where it serves all devices.
    """
    found: dict[str, dict[str, Any]] = {}
    for place, is_shipped in ((choose_registry(registry), False), (find_shipped(), True)):
        for one in VersionedFiles(url=place).list_models():
            if one.used is not None:
                facts = {"name": one.name, "version": one.used, "is_shipped": is_shipped}
                found.setdefault(one.name, facts)
    return [*found.values()]
