"""Lists and tries the devices of this machine, from outside their drivers' reach."""

from collections.abc import Callable, Sequence

from kernelcast.launches.known_devices import recall_devices, remember_devices
from kernelcast.records.device import DeviceDescription, DeviceReport, TimerCheck
from kernelcast.records.errors import KernelcastError
from kernelcast.sampling.device_ids import match_device_id
from kernelcast.workers import SPARE, Task, WarmChildren, run_isolated, take_result

LIST_TIMEOUT_S = 60.0
CHECK_TIMEOUT_S = 60.0
_SUBJECT = "list of devices"
_LIST = Task(
    entry="kernelcast.launches.device_tasks:list_devices", returns=tuple[DeviceDescription, ...]
)
_CHECK = Task(entry="kernelcast.launches.device_tasks:check_device", returns=TimerCheck)


def list_descriptions(children: WarmChildren | None = None) -> list[DeviceDescription]:
    """Describe every device that the drivers show, in the order of their ids.

    The drivers are asked in a child process: one that crashes there is not loaded here.

    Parameters
    ----------
    children : WarmChildren, optional
        Keep that process for the first device that is asked something.

    Raises
    ------
    NoDeviceError
        If there is none; says how to install one.
    DeviceError
        If a driver crashes or hangs while it is asked.
    """
    if children is None:
        found = run_isolated(_LIST, None, timeout_s=LIST_TIMEOUT_S, subject=_SUBJECT)
    else:
        messages = children.stream(SPARE, _LIST, None, timeout_s=LIST_TIMEOUT_S, subject=_SUBJECT)
        found = take_result(_LIST, messages, _SUBJECT)
    remember_devices(found)
    return list(found)


def choose_devices(
    device_ids: Sequence[str], children: WarmChildren | None = None
) -> list[DeviceDescription]:
    """Describe the devices of those ids, each once, or all where none is named.

    Parameters
    ----------
    device_ids : sequence of str
        Ids, or their beginnings.
    children : WarmChildren, optional
        As of `list_descriptions`. Who has them asks a device next, which finds out whether it is
        still there: drivers are not asked where they have just told.

    Raises
    ------
    UnknownDeviceError
        If there is no device of an id.
    NoDeviceError
        If there is no device at all.
    """
    known = None if children is None else recall_devices()
    return pick_devices(device_ids, known or list_descriptions(children))


def pick_devices(
    device_ids: Sequence[str], known: Sequence[DeviceDescription]
) -> list[DeviceDescription]:
    """Give those of some devices that have these ids, or beginnings of ids; all if none is named.

    Raises
    ------
    UnknownDeviceError
        If none has an id.
    """
    by_id = {one.id: one for one in known}
    chosen = dict.fromkeys(match_device_id(wanted, by_id) for wanted in device_ids)
    return [by_id[key] for key in (chosen or by_id)]


def examine_devices(*, report: Callable[[str], None] = lambda _: None) -> list[DeviceReport]:
    """Try every device, each in a child process of its own.

    Parameters
    ----------
    report : callable, optional
        Is told of each device and stage.

    Returns
    -------
    list of DeviceReport
        A device that fails, crashes or hangs says so in `broken_reason`; the others go on.

    Raises
    ------
    NoDeviceError
        If there is no device.
    """
    report("looking for devices")
    return [_examine(description, report) for description in list_descriptions()]


def _examine(description: DeviceDescription, report: Callable[[str], None]) -> DeviceReport:
    try:
        timer: TimerCheck = run_isolated(
            _CHECK,
            description.id,
            timeout_s=CHECK_TIMEOUT_S,
            subject=description.id,
            report=lambda stage: report(f"{description.id}: {stage}"),
        )
    except KernelcastError as error:
        return DeviceReport(description=description, broken_reason=str(error))
    return DeviceReport(description=description, timer=timer)
