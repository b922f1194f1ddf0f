from kernelcast.cli.collect.run import list_left_out
from kernelcast.collection.progress import CollectionOutcome, DeviceOutcome


def test_what_is_left_out_has_a_reason() -> None:
    """A number in a table would leave its reader guessing."""
    one = DeviceOutcome(device_id="fake", skipped={"sgemm/sgemm_nt": "128 work-groups"})
    outcome = CollectionOutcome(devices=[one, DeviceOutcome(device_id="other")])
    assert list_left_out(outcome) == ["fake: sgemm/sgemm_nt left out: 128 work-groups"]
