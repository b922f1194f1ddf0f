from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.launches.machines import find_stand_in, foretell_own
from kernelcast.launches.problem_file import read_problem
from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.answering.policy import Policy
from kernelcast.records.device import DeviceDescription, DeviceKind
from support.builders import make_description
from support.fake_executor import FakeExecutor


def make_gpu(device_id: str, name: str, units: int) -> DeviceDescription:
    """Describe a GPU as its driver does."""
    return replace(
        make_description(), id=device_id, name=name, kind=DeviceKind.GPU, compute_units=units
    )


@pytest.mark.parametrize(
    ("device_id", "name", "units", "expected"),
    [
        ("nvidia-tesla-v100-sxm2-0a1b", "Tesla V100-SXM2-16GB", 80, "v100"),
        ("nvidia-a100-sxm4-40gb-0a1b", "NVIDIA A100-SXM4-40GB", 108, "a100"),
        ("nvidia-a100-80gb-pcie-0a1b", "NVIDIA A100 80GB PCIe", 108, "a100-80gb"),
        ("nvidia-h100-pcie-0a1b", "NVIDIA H100 PCIe", 114, "h100-pcie"),
        ("nvidia-h200-0a1b", "NVIDIA H200", 132, "h200"),
        ("nvidia-l40s-0a1b", "NVIDIA L40S", 142, "l40"),
        ("amd-amd-instinct-mi250x-0a1b", "gfx90a:sramecc+:xnack-", 110, "mi210"),
        ("rusticl-amd-radeon-rx-0a1b", "AMD Radeon RX 6900 XT (radeonsi)", 40, "rx-6900-xt"),
        ("nvidia-a100-sxm4-40gb-0a1b", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", 14, None),
        ("nvidia-tesla-v100s-pcie-0a1b", "Tesla V100S-PCIE-32GB", 80, None),
        ("nvidia-rtx-a4000-0a1b", "NVIDIA RTX A4000", 48, None),
        ("nvidia-h100-80gb-hbm3-0a1b", "NVIDIA H100 80GB HBM3", 132, "gh200"),
        ("nvidia-h100-nvl-0a1b", "NVIDIA H100 NVL", 132, "gh200"),
        ("nvidia-h100-80gb-hbm3-0a1b", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", 16, None),
        ("nvidia-geforce-rtx-4090-0a1b", "NVIDIA GeForce RTX 4090", 128, None),
        ("intel-intel-arc-a770-0a1b", "Intel(R) Arc(TM) A770 Graphics", 512, None),
    ],
)
def test_a_gpu_is_recognised_by_its_name(
    device_id: str, name: str, units: int, expected: str | None
) -> None:
    """Finds descriptions of the same chip, and none for parts of a chip or other boards."""
    found = find_stand_in(make_gpu(device_id, name, units))
    assert (found.id if found else None) == expected


def test_processors_are_never_stood_in_for() -> None:
    """Leaves devices of other kinds alone, whatever they are called."""
    gpu = make_gpu("nvidia-a100-sxm4-40gb-0a1b", "NVIDIA A100-SXM4-40GB", 108)
    assert find_stand_in(replace(gpu, kind=DeviceKind.CPU)) is None


def test_a_stand_in_answers_and_says_so() -> None:
    """Models a launch on a GPU that was not calibrated, with a note of whose numbers count."""
    problem = read_problem(Path(__file__).parents[3] / "examples/triad/triad.yaml")
    found = foretell_own(problem, problem.ndrange, "nvidia-a100-sxm4-40gb-0a1b", stand_in="a100")
    assert found is not None
    assert found.seconds > 0
    assert any("A100-SXM4-40GB stands in" in one for one in found.notes)


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (make_gpu("nvidia-a100-sxm4-40gb-0a1b", "NVIDIA A100-SXM4-40GB", 108), "a100"),
        (make_gpu("nvidia-geforce-rtx-4090-0a1b", "NVIDIA GeForce RTX 4090", 128), ""),
    ],
)
def test_models_are_asked_with_the_stand_in(device: DeviceDescription, expected: str) -> None:
    """Names the description in the task that the models are given."""
    problem = read_problem(Path(__file__).parents[3] / "examples/triad/triad.yaml")
    request = LaunchRequest(
        problem=problem, device=device, policy=Policy(), executor=FakeExecutor()
    )
    assert request.ask_model().stand_in == expected
