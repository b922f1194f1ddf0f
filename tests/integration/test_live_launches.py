from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import kernelcast
from kernelcast.launches.live import describe_live
from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor import api
from kernelcast.predictor.answering.live_objects import LiveObjects
from kernelcast.predictor.answering.tasks import EstimateTask
from kernelcast.records.arguments import Access
from kernelcast.records.estimates import Estimate
from kernelcast.records.feature_vector import FeatureGroup, group_of
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession

pytestmark = pytest.mark.device

SOURCE = """
kernel void scale(global const float *a, global float *b, float factor)
{
    size_t i = get_global_id(0);
    float x = a[i];
    for (int k = 0; k < 200; ++k)
        x = x * factor + 1.0f;
    b[i] = x;
}
"""
ITEMS = 1 << 16


@pytest.fixture
def program(
    session: DeviceSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[cl.Program]:
    """Build the kernels, with an empty data folder."""
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))
    api._find_predictor.cache_clear()
    yield cl.Program(session.context, SOURCE).build()
    api._find_predictor.cache_clear()


def make_launch(program: cl.Program, session: DeviceSession, factor: float) -> kernelcast.Launch:
    """Make a launch of the first kernel with buffers of its own."""
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    content = np.ones(ITEMS, np.float32)
    buffers = [cl.Buffer(session.context, flags, hostbuf=content) for _ in range(2)]
    queue = cl.CommandQueue(session.context, session.device)
    arguments = [*buffers, np.float32(factor)]
    return kernelcast.Launch(cl.Kernel(program, "scale"), (ITEMS,), (64,), arguments, queue=queue)


def test_features_of_live_launches_are_those_of_problems(
    program: cl.Program, session: DeviceSession
) -> None:
    """What learned models are told is made of a live launch too."""
    live = describe_live(make_launch(program, session, 0.5))
    task = EstimateTask(
        problem=live.problem,
        device_id=live.device.id,
        settings=EstimateSettings(),
        wants_row=True,
    )
    outcome = LiveObjects(live).sample(task, timeout_s=60.0, report=lambda _: None)
    assert outcome.row is not None, outcome.row_failure
    groups = {group_of(name) for name in outcome.row.vector.names}
    assert {FeatureGroup.SAMPLED, FeatureGroup.STATIC} <= groups
    assert outcome.accesses[0] is Access.READ


def _count_moments(estimate: Estimate) -> int:
    return len({one.moment for one in estimate.explain().pieces if one.kind == "samples"})


def test_further_sizes_are_sampled_no_longer_than_pays(
    program: cl.Program, session: DeviceSession
) -> None:
    """A second moment of a short launch takes longer than it narrows the answer."""
    launch = make_launch(program, session, 0.5)
    other = replace(launch, global_size=(ITEMS // 2,))
    with kernelcast.Predictor() as predictor:
        predictor.estimate(launch)
        assert _count_moments(predictor.estimate(other)) == 1
