import pytest

from kernelcast.records.errors import UnknownDeviceError
from kernelcast.sampling.discovery import match_device_id

IDS = ["pocl-epyc-34cd", "intel-epyc-12ab", "intel-epyc-12ab-2"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("pocl", IDS[0]), ("intel-epyc-12ab", IDS[1]), ("intel-epyc-12ab-2", IDS[2])],
)
def test_finds_ids_and_unique_beginnings(wanted: str, found: str) -> None:
    """Finds a device by its whole id, even if others begin so, or by a beginning of one id."""
    assert match_device_id(wanted, IDS) == found


@pytest.mark.parametrize(
    ("wanted", "what"), [("cuda", "unknown"), ("", "unknown"), ("intel", "the beginning of 2 ids")]
)
def test_lists_the_devices_there_are(wanted: str, what: str) -> None:
    """Refuses an id that fits none or several devices, listing all."""
    with pytest.raises(UnknownDeviceError, match=f"is {what}; the devices here are:") as caught:
        match_device_id(wanted, IDS)
    assert all(one in str(caught.value) for one in IDS)
