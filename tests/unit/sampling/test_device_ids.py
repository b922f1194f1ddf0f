from types import SimpleNamespace

import pytest

from kernelcast.records.device import match_device_id
from kernelcast.records.errors import UnknownDeviceError
from kernelcast.sampling import discovery
from kernelcast.sampling.host import Processor
from kernelcast.sampling.opencl import cl

IDS = ["pocl-epyc-34cd", "intel-epyc-12ab", "intel-epyc-12ab-2"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("pocl", IDS[0]), ("intel-epyc-12ab", IDS[1]), ("intel-epyc-12ab-2", IDS[2]),
        ("cuda", "unknown"), ("", "unknown"), ("intel", "the beginning of 2 ids"),
    ],
)  # fmt: skip
def test_finds_ids_and_unique_beginnings(wanted: str, found: str) -> None:
    """Finds a device by its whole id, even if others begin so, or by a beginning of one id; lists
    all where none or several fit."""
    if found in IDS:
        assert match_device_id(wanted, IDS) == found
        return
    listed = ".*".join(sorted(IDS))
    with pytest.raises(UnknownDeviceError, match=f"is {found}; the devices here are:.*{listed}"):
        match_device_id(wanted, IDS)


def _make_device(
    name: str, platform: str, kind: int = cl.device_type.GPU, **answers: object
) -> SimpleNamespace:
    numbers = dict.fromkeys(
        ["max_compute_units", "local_mem_size", "global_mem_size", "max_mem_alloc_size",
         "max_work_group_size", "double_fp_config"], 1,
    )  # fmt: skip
    return SimpleNamespace(
        name=name, platform=SimpleNamespace(name=platform, vendor=platform), vendor=platform,
        driver_version="1", version="OpenCL 3.0", type=kind,
        max_work_item_sizes=(1, 1, 1), extensions="", **numbers, **answers,
    )  # fmt: skip


def _describe(monkeypatch: pytest.MonkeyPatch, name: str, processor: Processor) -> str:
    monkeypatch.setattr(discovery, "read_processor", lambda: processor)
    device = _make_device(name, "rusticl", cl.device_type.CPU)
    return discovery.describe_device(device).id  # type: ignore[arg-type]


def test_a_device_on_another_processor_is_another_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device on the host's processor has an id of it, whatever it calls itself."""
    milan, genoa, xeon = (
        Processor(name="AMD EPYC", generation="25 1"),
        Processor(name="AMD EPYC", generation="25 17"),
        Processor(name="Intel(R) Xeon(R) Processor", generation="6 207"),
    )
    mesa = [_describe(monkeypatch, "llvmpipe (LLVM 15.0.6)", one) for one in (milan, genoa, xeon)]
    assert len(set(mesa)) == 3
    assert mesa[0].startswith("rusticl-llvmpipe-amd-epyc-")
    assert mesa[2].startswith("rusticl-llvmpipe-intel-xeon-")
    assert mesa[0] == _describe(monkeypatch, "llvmpipe (LLVM 19.1.0)", milan)


def test_boards_of_one_architecture_are_different_devices() -> None:
    """Tells AMD's boards apart by their own names: the driver's is the architecture's."""
    ids = [
        discovery.describe_device(
            _make_device("gfx90a:sramecc+:xnack-", "AMD Accelerated Parallel Processing", **board)
        )  # type: ignore[arg-type]
        for board in ({"board_name_amd": "AMD Instinct MI210"},
                      {"board_name_amd": "AMD Instinct MI250X"}, {})
    ]  # fmt: skip
    assert len({one.id for one in ids}) == 3
    assert ids[0].id.startswith("amd-amd-instinct-mi210")
    assert {one.name for one in ids} == {"gfx90a:sramecc+:xnack-"}


def test_equal_gpus_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers twins by domain, bus and slot, whatever order the driver lists them in."""
    nvidia = [
        _make_device(
            "NVIDIA H100", "NVIDIA CUDA",
            pci_domain_id_nv=domain, pci_bus_id_nv=bus, pci_slot_id_nv=0,
        )
        for domain, bus in ((0, 9), (1, 9), (0, 10))
    ]  # fmt: skip
    places = (SimpleNamespace(bus=bus, device=0, function=0) for bus in (-59, 5))  # signed bytes
    amd = [_make_device("gfx942", "AMD Accelerated", topology_amd=place) for place in places]
    for order in (1, -1):
        platforms = [
            SimpleNamespace(get_devices=lambda listed=listed[::order]: listed)
            for listed in (nvidia, amd)
        ]
        monkeypatch.setattr(cl, "get_platforms", lambda platforms=platforms: platforms)
        handles = [device for _, device in discovery.find_devices()]
        assert [one for one in handles if one in nvidia] == [nvidia[0], nvidia[2], nvidia[1]]
        assert [one for one in handles if one in amd] == [amd[1], amd[0]]
