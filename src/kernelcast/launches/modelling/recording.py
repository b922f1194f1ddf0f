"""Records on a device where accesses go whose address depends on data."""

from collections.abc import Callable
from dataclasses import replace

from kernelcast.launches.modelling.sources import LaunchSource
from kernelcast.records.errors import InputError


def record_accesses(
    source: LaunchSource,
    device_id: str | None = None,
    *,
    report: Callable[[str], None] = lambda _: None,
) -> LaunchSource:
    """Run a few instrumented work-groups and add their addresses and counts.

    Parameters
    ----------
    device_id : str, optional
        Id of an OpenCL device, or its beginning; the first one when left out. It need not be the
        machine that is modelled: addresses are the same everywhere.
    report : callable, optional
        Is told of each stage.

    Returns
    -------
    LaunchSource
        With the local size that the device chose, if none was given.

    Raises
    ------
    InputError
        If the source was written down, so that no device can run it.
    DeviceError
        If there is no device, or it cannot run the kernel.
    """
    # Drivers take a moment to load; most models need none.
    from kernelcast.features.counting.summary import summarise
    from kernelcast.launches.counting import CountSettings, count_in_session
    from kernelcast.sampling.discovery import choose_device, find_devices
    from kernelcast.sampling.session import open_session

    if source.problem is None:
        msg = f"{source.name}: no device can run accesses that were written down; give a problem"
        raise InputError(msg)
    devices = find_devices()
    wanted = device_id or devices[0][0].id
    session = open_session(*choose_device(wanted, devices))
    problem = source.problem.on(session.description)
    counted = count_in_session(session, problem, CountSettings(), report=report)
    counters = summarise(source.kernel.facts, counted.sample)
    return replace(
        source,
        ndrange=counted.ndrange,
        executed=counters.executed,
        recorded=counted.addresses,
        warps=counters.warps,
    )
