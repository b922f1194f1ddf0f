import gc
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import kernelcast
from kernelcast.launches import live
from kernelcast.launches.live import LiveLaunch, describe_live
from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor import api
from kernelcast.predictor.answering.live_objects import LiveObjects
from kernelcast.predictor.answering.tasks import EstimateTask
from kernelcast.records.arguments import Access
from kernelcast.records.errors import InputError, SignatureError
from kernelcast.records.estimates import Estimate, Tier
from kernelcast.records.feature_vector import FeatureGroup, group_of
from kernelcast.sampling.building import read_build_options
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
kernel void rows(global const int *begin, global const int *value, global int *out)
{
    int sum = 0;
    for (int k = begin[get_global_id(0)]; k < begin[get_global_id(0) + 1]; ++k)
        sum += value[k];
    out[get_global_id(0)] = sum;
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


def test_observed_launches_are_answered_from_history(
    program: cl.Program, session: DeviceSession
) -> None:
    """What a program reports of its launch is known to the next estimate, in any process."""
    launch = make_launch(program, session, 0.5)
    first = kernelcast.Predictor().estimate(launch)
    assert first.identity is not None
    assert first.tier is not Tier.HISTORY
    for factor in (1.0, 1.02, 0.98):
        kernelcast.observe(first, factor * first.seconds, is_first=False)
    again = kernelcast.Predictor().estimate(make_launch(program, session, 0.5))
    assert again.tier is Tier.HISTORY
    assert again.seconds == pytest.approx(first.seconds, rel=0.03)


def test_same_launches_are_remembered_and_others_are_not(
    program: cl.Program, session: DeviceSession
) -> None:
    """Other buffers of the same sizes are the same launch, another scalar is another."""
    with kernelcast.Predictor() as predictor:
        first = predictor.estimate(make_launch(program, session, 0.5))
        assert predictor.estimate(make_launch(program, session, 0.5)) is first
        other = predictor.estimate(make_launch(program, session, 0.25))
    assert other.identity is not None
    assert first.identity is not None
    assert other.identity.key != first.identity.key


def test_answers_keep_no_buffer_of_the_program(program: cl.Program, session: DeviceSession) -> None:
    """What a program releases is released, however many of its launches are remembered."""
    with kernelcast.Predictor() as predictor:
        launch = make_launch(program, session, 0.5)
        buffer = launch.args[0]
        before = sys.getrefcount(buffer)
        predictor.estimate(launch)
        gc.collect()
        assert sys.getrefcount(buffer) == before


def test_contents_that_decide_make_other_launches(
    program: cl.Program, session: DeviceSession
) -> None:
    """The lengths of rows are part of a launch, their values are not."""
    queue = cl.CommandQueue(session.context, session.device)

    def identify(length: int, value: int) -> str:
        begin = np.arange(ITEMS + 1, dtype=np.int32) * length
        contents = [begin, np.full(4 * ITEMS, value, np.int32), np.zeros(ITEMS, np.int32)]
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        buffers = [cl.Buffer(session.context, flags, hostbuf=one) for one in contents]
        launch = kernelcast.Launch(
            cl.Kernel(program, "rows"), (ITEMS,), (64,), buffers, queue=queue
        )
        estimate = kernelcast.Predictor().estimate(launch)
        assert estimate.identity is not None
        return estimate.identity.key

    assert identify(2, 1) != identify(4, 1)


def test_launches_that_are_asked_again_are_not_described_again(
    program: cl.Program, session: DeviceSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same objects are answered from memory, whatever was made anew around them."""
    launch = make_launch(program, session, 0.5)
    with kernelcast.Predictor() as predictor:
        first = predictor.estimate(launch)
        described = []

        def describe(one: kernelcast.Launch, name: live.LiveName | None) -> LiveLaunch:
            described.append(one)
            return describe_live(one, name)

        monkeypatch.setattr(live, "describe_live", describe)
        same = replace(launch, kernel=program.scale, args=(*launch.args[:2], np.float32(0.5)))
        assert predictor.estimate(launch) is first
        assert predictor.estimate(same) is first
        assert not described
        others = (
            replace(launch, args=(*launch.args[:2], np.float32(-0.0))),
            replace(launch, args=(*launch.args[:2], np.float32(0.0))),
            replace(launch, global_size=(ITEMS // 2,)),
            replace(launch, local_size=(32,)),
            replace(launch, source=SOURCE.replace("200", "100")),
        )
        found = [first, *(predictor.estimate(one) for one in others)]
        assert len(described) == len(others)
        assert len({one.identity.key for one in found if one.identity}) == len(found)


def test_programs_that_are_built_anew_are_others(
    program: cl.Program, session: DeviceSession
) -> None:
    """The options of a build tell kernels of the same program apart."""
    launch = make_launch(program, session, 0.5)
    other = cl.Program(session.context, SOURCE).build(options=["-DOTHER=1"])
    if not read_build_options(other, session.device):
        pytest.skip("the driver does not tell the options of programs that are made from binaries")
    with kernelcast.Predictor() as predictor:
        first = predictor.estimate(launch)
        second = predictor.estimate(replace(launch, kernel=cl.Kernel(other, "scale")))
        assert first.identity is not None
        assert second.identity is not None
        assert second.identity.kernel.digest != first.identity.kernel.digest
    kernels = (cl.Kernel(one, "scale") for one in (program, other))
    names = [live.name_live(replace(launch, kernel=one)) for one in kernels]
    assert len({one.kernel_key for one in names if one is not None}) == 2


def test_answers_that_are_remembered_follow_observations(
    program: cl.Program, session: DeviceSession
) -> None:
    """What was observed changes the answer to objects that are asked again."""
    launch = make_launch(program, session, 0.5)
    with kernelcast.Predictor() as predictor:
        first = predictor.estimate(launch)
        predictor.observe(first, 1.3 * first.seconds, is_first=False)
        again = predictor.estimate(launch)
        assert again.seconds > first.seconds
        assert "observed" in {one.kind for one in again.list_pieces()}


def test_contents_that_decide_are_looked_at_each_time(
    program: cl.Program, session: DeviceSession
) -> None:
    """A launch whose rows have become longer, in the same buffers, is another launch."""
    queue = cl.CommandQueue(session.context, session.device)
    begin = np.arange(ITEMS + 1, dtype=np.int32)
    contents = [begin, np.ones(4 * ITEMS, np.int32), np.zeros(ITEMS, np.int32)]
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffers = [cl.Buffer(session.context, flags, hostbuf=one) for one in contents]
    launch = kernelcast.Launch(cl.Kernel(program, "rows"), (ITEMS,), (64,), buffers, queue=queue)
    with kernelcast.Predictor() as predictor:
        first = predictor.estimate(launch)
        assert predictor.estimate(launch) is first
        cl.enqueue_copy(queue, buffers[2], np.ones(ITEMS, np.int32))
        assert predictor.estimate(launch) is first
        cl.enqueue_copy(queue, buffers[0], 4 * begin)
        second = predictor.estimate(launch)
        assert second.identity is not None
        assert first.identity is not None
        assert second.identity.key != first.identity.key


def test_problems_and_live_launches_are_asked_together(
    program: cl.Program, session: DeviceSession
) -> None:
    """A live launch has its queue's device; what names another is refused."""
    path = Path(__file__).parents[2] / "examples" / "triad" / "triad.yaml"
    launch = make_launch(program, session, 0.5)
    device = session.description
    problem = kernelcast.read_problem(path, parameters={"N": ITEMS})
    with kernelcast.Predictor([device.id]) as predictor:
        entries = predictor.estimate_many([problem, launch])
        assert [one.problem for one in entries] == ["triad", "scale"]
        assert [one.device_id for one in entries] == [device.id, device.id]
        assert all(one.estimate is not None for one in entries), [one.error for one in entries]
        few = replace(launch, args=launch.args[:2])
        (wrong,) = predictor.estimate_many([few])
        assert isinstance(wrong.error, SignatureError)
        assert (wrong.problem, wrong.device_id) == ("scale", device.id)
        fastest = predictor.fastest([entries[1], wrong])
        assert str(fastest).endswith(f"no answer from {device.id})")
        with pytest.raises(InputError, match="leave the device out"):
            predictor.estimate(launch, "other-device")


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
