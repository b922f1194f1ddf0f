"""Every way in which kernelcast says no.

::

    KernelcastError
    ├── InputError                  what the caller gave cannot be used (exit status 2)
    │   ├── ProblemFileError        a problem file is unreadable, malformed or inconsistent
    │   ├── MachineFileError        a machine description is unreadable, malformed or inconsistent
    │   ├── UnknownMachineError     no machine description has that name
    │   ├── NDRangeError            sizes, offsets or local sizes do not make an index space
    │   ├── SignatureError          the arguments do not fit the kernel's parameters
    │   ├── OverrunError            the source proves that the launch leaves a buffer
    │   ├── KernelNotFoundError     the source holds no kernel of that name
    │   ├── CompileError            a compiler refused the source
    │   ├── PersistentKernelError   work-groups fetch their work: no part stands for the whole
    │   ├── UnknownDeviceError      no device has that id
    │   ├── EventTimesError         a device's events tell wrong times: seconds by the clock do
    │   ├── MissingExtraError       what was asked for needs a package that is an extra
    │   └── RecordingError          a recording is unreadable or lacks what is asked of it
    └── DeviceError                 a device cannot answer (exit status 1)
        ├── NoDeviceError           no OpenCL device was found
        ├── BrokenDeviceError       a device is there but cannot build or run a kernel
        ├── DeviceLimitError        the launch does not fit this device
        ├── KernelRunError          the kernel failed or crashed the driver
        ├── MeasurementError        a microbenchmark cannot vouch for its number
        ├── EstimateTimeoutError    the estimate did not end within its time limit
        └── NoAnswerYetError        nothing is known of a launch in the time that its caller waits
"""

from typing import Final


class KernelcastError(Exception):
    """Base of every error that kernelcast raises on purpose."""


class InputError(KernelcastError):
    """Is raised when what the caller gave cannot be used on any device."""

    key: str | None = None
    """Place of the value in a file, such as ``args[0].count``; None where no file is at fault."""


class ProblemFileError(InputError):
    """Is raised when a problem file is unreadable, malformed or inconsistent."""


class MachineFileError(InputError):
    """Is raised when a machine description is unreadable, malformed or inconsistent."""


class UnknownMachineError(InputError):
    """Is raised when no machine description has the name asked for; names those there are."""


class NDRangeError(InputError):
    """Is raised when sizes, offsets or local sizes do not make an index space."""


class SignatureError(InputError):
    """Is raised when the arguments do not fit the kernel's parameters."""


class OverrunError(InputError):
    """Is raised when the source proves that a launch leaves a buffer; names the place."""


class KernelNotFoundError(InputError):
    """Is raised when the source holds no kernel of the name asked for."""


class CompileError(InputError):
    """Is raised when a compiler, a device's or ours, refuses the source; holds what it says."""


class PersistentKernelError(InputError):
    """Is raised when work-groups fetch their work, so that no part stands for the whole."""


class EventTimesError(InputError):
    """Is raised when a device's events tell wrong times; seconds by the host's clock do."""


class MissingExtraError(InputError):
    """Is raised when what was asked for needs a package that is not installed; names the extra."""


class UnknownDeviceError(InputError):
    """Is raised when no device has the id asked for; names the ids there are."""


class RecordingError(InputError):
    """Is raised when a recording is unreadable or lacks what is asked of it."""


class DeviceError(KernelcastError):
    """Is raised when a device cannot answer."""


class NoDeviceError(DeviceError):
    """Is raised when no OpenCL device was found; says how to install one."""


class BrokenDeviceError(DeviceError):
    """Is raised when a device is there but cannot build or run a kernel."""


class DeviceLimitError(DeviceError):
    """Is raised when a launch exceeds what the device can hold."""


class KernelRunError(DeviceError):
    """Is raised when the kernel failed or crashed its driver."""


class MeasurementError(DeviceError):
    """Is raised when a microbenchmark cannot vouch for its number; says why."""


class EstimateTimeoutError(DeviceError):
    """Is raised when an estimate did not end within its time limit."""


class NoAnswerYetError(DeviceError):
    """Is raised when nothing is known of a launch in the time that its caller waits."""


EXTRAS: Final = {
    "pyarrow": "data", "numba": "train", "fastapi": "service", "uvicorn": "service",
    "prometheus_client": "service",
}  # fmt: skip
"""Extras by the module that is imported."""


def explain_missing(error: ImportError) -> MissingExtraError | None:
    """Tell which extra has the module that could not be imported; None if none has."""
    module = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(module)
    if extra is None:
        return None
    return MissingExtraError(
        f"{module} is not installed; install it with `pip install 'kernelcast[{extra}]'`"
    )
