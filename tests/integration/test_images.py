from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import kernelcast
from kernelcast.records.errors import SignatureError
from kernelcast.sampling.opencl import cl
from kernelcast.sampling.session import DeviceSession

pytestmark = pytest.mark.device

SOURCE = """
constant sampler_t NEAREST = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP | CLK_FILTER_NEAREST;
kernel void invert(read_only image2d_t from, write_only image2d_t to)
{
    int2 at = (int2)(get_global_id(0), get_global_id(1));
    write_imagef(to, at, 1.0f - read_imagef(from, NEAREST, at));
}
kernel void invert_layers(read_only image2d_array_t from, write_only image2d_array_t to)
{
    int4 at = (int4)(get_global_id(0), get_global_id(1), 0, 0);
    write_imagef(to, at, 1.0f - read_imagef(from, NEAREST, at));
}
kernel void mark(write_only image1d_t to)
{
    write_imagef(to, get_global_id(0), 1.0f);
}
"""
SIDE = 512
Pixels = npt.NDArray[np.uint8]


@pytest.fixture
def program(session: DeviceSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> cl.Program:
    """Build the kernels, with an empty data folder."""
    if not session.device.image_support:
        pytest.skip("a device without images")
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))
    built: cl.Program = cl.Program(session.context, SOURCE).build()
    return built


def put(
    session: DeviceSession,
    pixels: Pixels | None,
    shape: tuple[int, ...],
    *,
    is_array: bool = False,
) -> cl.Image:
    """Make a user's image, as most programs do: the kernel's qualifier says what is written."""
    flags = cl.mem_flags.READ_WRITE | (0 if pixels is None else cl.mem_flags.COPY_HOST_PTR)
    layout = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.UNORM_INT8)
    return cl.create_image(
        session.context, flags, layout, shape=shape, hostbuf=pixels, is_array=is_array
    )


@pytest.mark.parametrize(
    ("name", "shape"), [("invert", (SIDE, SIDE)), ("invert_layers", (SIDE, SIDE, 2))]
)
def test_images_are_left_as_they_were(
    session: DeviceSession, program: cl.Program, name: str, shape: tuple[int, ...]
) -> None:
    """Samples write to a copy of an image; the one that is written may have been read, too."""
    before = np.random.default_rng(1).integers(0, 256, (*shape[::-1], 4), dtype=np.uint8)
    image = put(session, before, shape, is_array=len(shape) > 2)
    launch = kernelcast.Launch(
        getattr(program, name), (SIDE, SIDE), (16, 16), (image, image), queue=session.queue
    )
    estimate = kernelcast.Predictor().estimate(launch)
    assert estimate.seconds > 0
    assert estimate.sampled_work_groups > 0
    after = np.empty_like(before)
    region = (*shape, 1)[:3]
    cl.enqueue_copy(session.queue, after, image, origin=(0, 0, 0), region=region)
    assert np.array_equal(before, after)


def test_images_that_cannot_be_copied_are_refused(
    session: DeviceSession, program: cl.Program
) -> None:
    """Before anything is written to them."""
    image = put(session, None, (SIDE,))
    launch = kernelcast.Launch(program.mark, (SIDE,), (16,), (image,), queue=session.queue)
    with pytest.raises(SignatureError, match="cannot be copied; give a 2-D or 3-D image"):
        kernelcast.Predictor().estimate(launch)
