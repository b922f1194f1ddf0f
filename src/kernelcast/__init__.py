"""Predicts how long an OpenCL kernel takes on each device, from samples of a few work-groups."""

import importlib
import logging
from typing import TYPE_CHECKING

from kernelcast.sampling.runtimes import ensure_caches, ensure_vendors

if TYPE_CHECKING:
    from kernelcast.balancing.balancer import Balancer as Balancer
    from kernelcast.balancing.balancer import balance as balance
    from kernelcast.balancing.settings import BalanceSettings as BalanceSettings
    from kernelcast.balancing.settings import DevicePlace as DevicePlace
    from kernelcast.launches.devices import examine_devices as examine_devices
    from kernelcast.launches.live import Launch as Launch
    from kernelcast.launches.problem_file import read_problem as read_problem
    from kernelcast.launches.settings import EstimateSettings as EstimateSettings
    from kernelcast.predictor.api import device_id as device_id
    from kernelcast.predictor.api import estimate as estimate
    from kernelcast.predictor.api import estimate_problem as estimate_problem
    from kernelcast.predictor.api import observe as observe
    from kernelcast.predictor.predictor import Predictor as Predictor
    from kernelcast.predictor.predictor import PredictorOptions as PredictorOptions
    from kernelcast.records.arguments import LocalArgument as LocalArgument
    from kernelcast.records.balance import BalanceReport as BalanceReport
    from kernelcast.records.errors import DeviceError as DeviceError
    from kernelcast.records.errors import EventTimesError as EventTimesError
    from kernelcast.records.errors import InputError as InputError
    from kernelcast.records.errors import KernelcastError as KernelcastError
    from kernelcast.records.errors import NoAnswerYetError as NoAnswerYetError
    from kernelcast.records.estimates import DeviceAnswer as DeviceAnswer
    from kernelcast.records.estimates import Estimate as Estimate
    from kernelcast.records.estimates import Interval as Interval
    from kernelcast.records.estimates import Measurement as Measurement
    from kernelcast.records.frames import to_frame as to_frame
    from kernelcast.records.kernel import Kernel as Kernel
    from kernelcast.records.ndrange import NDRange as NDRange
    from kernelcast.training.comparing import compare_methods as compare_methods
    from kernelcast.tuning.api import tune as tune
    from kernelcast.tuning.report import TuneReport as TuneReport
    from kernelcast.tuning.report import TuneSettings as TuneSettings

    __version__: str

# Before the program asks pyopencl for platforms, which looks for runtimes and caches once.
ensure_caches()
ensure_vendors()
# Where warnings go is the program's choice. What the two lines above warn of is shown in any case:
# the command line has had no time to choose.
logging.getLogger(__name__).addHandler(logging.NullHandler())

# Found when asked for: a command of the program, or a child process, needs a part of them only.
_HOMES = {
    "balancing.balancer": ("Balancer", "balance"),
    "balancing.settings": ("BalanceSettings", "DevicePlace"),
    "launches.devices": ("examine_devices",),
    "launches.live": ("Launch",),
    "launches.problem_file": ("read_problem",),
    "launches.settings": ("EstimateSettings",),
    "predictor.api": ("device_id", "estimate", "estimate_problem", "observe"),
    "predictor.predictor": ("Predictor", "PredictorOptions"),
    "records.arguments": ("LocalArgument",),
    "records.balance": ("BalanceReport",),
    "records.errors": (
        "DeviceError",
        "EventTimesError",
        "InputError",
        "KernelcastError",
        "NoAnswerYetError",
    ),
    "records.estimates": ("DeviceAnswer", "Estimate", "Interval", "Measurement"),
    "records.frames": ("to_frame",),
    "records.kernel": ("Kernel",),
    "records.ndrange": ("NDRange",),
    "training.comparing": ("compare_methods",),
    "tuning.api": ("tune",),
    "tuning.report": ("TuneReport", "TuneSettings"),
}  # fmt: skip
__all__ = [name for names in _HOMES.values() for name in names]


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version  # reads files, and takes as long as all of this

        return version("kernelcast")
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
