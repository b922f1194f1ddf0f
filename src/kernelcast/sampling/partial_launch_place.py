"""Opens a device, or a part of one, to run boxes of work-groups on."""

from kernelcast.records.errors import DeviceLimitError
from kernelcast.sampling.discovery import choose_device, find_devices
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession


def open_place(device_id: str, compute_units: int | None = None) -> DeviceSession:
    """Open a device, or a part of it, with a context of its own.

    Launches are timed by the host's clock, so no trial of the device's timer is needed.

    Parameters
    ----------
    compute_units : int, optional
        Use a sub-device of so many compute units.
    """
    description, device = choose_device(device_id, find_devices())
    if compute_units is not None:
        by_counts = [cl.device_partition_property.BY_COUNTS, compute_units, 0]
        try:
            # pyopencl types the list as properties only; counts stand in it too
            device = device.create_sub_devices(by_counts)[0]  # type: ignore[arg-type]
        except cl.Error as error:
            msg = (
                f"{description.id}: cannot be divided into a sub-device of {compute_units} of its "
                f"{description.compute_units} compute units: {error}"
            )
            raise DeviceLimitError(msg) from error
    return DeviceSession(description, cl.Context([device]), device, uses_event_timer=False)
