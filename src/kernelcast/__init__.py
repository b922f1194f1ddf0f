"""Predicts how long an OpenCL kernel takes on each device, from samples of a few work-groups."""

from kernelcast.predictor.api import estimate, estimate_problem
from kernelcast.predictor.devices import examine_devices
from kernelcast.predictor.settings import EstimateSettings
from kernelcast.records.errors import DeviceError, InputError, KernelcastError
from kernelcast.records.estimates import DeviceAnswer, Estimate, Interval, Measurement

__all__ = [
    "DeviceAnswer",
    "DeviceError",
    "Estimate",
    "EstimateSettings",
    "InputError",
    "Interval",
    "KernelcastError",
    "Measurement",
    "estimate",
    "estimate_problem",
    "examine_devices",
]
