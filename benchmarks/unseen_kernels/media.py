"""Pictures, video, sound and radar."""

import numpy as np
from numpy import float32, int16, int32, uint8, uint32
from numpy.random import Generator

from unseen_kernels.cases import (
    Buffer,
    Case,
    Image,
    Restored,
    case,
    random_floats,
    round_up,
    zeros,
)


def random_bytes(rng: Generator, *shape: int) -> Buffer:
    """Give a buffer of numbers from 0 to 255."""
    return Buffer(rng.integers(0, 256, shape, dtype=uint8))


@case
def nv12_to_rgba(rng: Generator) -> Case:
    """Convert a frame of video to colours."""
    width, height, pitch = 1920, 1080, 2048
    planes = (random_bytes(rng, height, pitch), random_bytes(rng, height // 2, pitch))
    arguments = (
        *planes, zeros(height, width, 4, dtype=uint8),
        uint32(pitch), uint32(width), uint32(height),
    )  # fmt: skip
    return Case("nv12_to_rgba", "nv12_to_rgba", (1920, 1088), (16, 16), arguments)


@case
def deblock_vertical(rng: Generator) -> Case:
    """Smooth vertical edges of blocks of a 4K frame in place, where they are faint."""
    width, height = 3840, 2160
    steps = np.cumsum(rng.integers(-6, 7, (height, width)), axis=1) % 220
    arguments = (Restored(steps.astype(uint8)), int32(width), int32(20), int32(8), int32(3))
    return Case("deblock_vertical", "deblock", (width // 8 - 2, height), None, arguments)


@case
def box_running(rng: Generator) -> Case:
    """Compute means and deviations of columns of a picture."""
    width, height = 3000, 1000
    numbers = (int32(width), int32(height), int32(7))
    picture = Buffer(random_floats(rng, height, width))
    items = (round_up(width, 64),)
    arguments = (picture, zeros(height, width, 2), *numbers)
    return Case("box_running", "box_running", items, (64,), arguments)


@case
def tone_map(rng: Generator) -> Case:
    """Map a frame of high range to a screen, by 64 x 256 work-items in turn."""
    width, height = 2560, 1440
    hdr = Buffer(rng.gamma(0.5, 2, (height, width, 4)).astype(float32))
    numbers = (float32(0.7), uint32(width), uint32(width * height))
    arguments = (hdr, zeros(height, width, dtype=uint32), *numbers)
    return Case("tone_map", "tone_map", (16384,), (256,), arguments)


@case
def fir_decimate(rng: Generator) -> Case:
    """Bring stereo sound from 192 to 48 kHz with 129 taps."""
    n, taps, factor = 200_000, 129, 4
    sound = rng.integers(-20000, 20000, (n * factor + taps, 2)).astype(int16)
    window = (np.hanning(taps) / np.hanning(taps).sum()).astype(float32)
    numbers = (int32(taps), int32(factor), int32(n))
    arguments = (Buffer(sound), zeros(n, 2, dtype=int16), Buffer(window), *numbers)
    return Case("fir_decimate", "fir_decimate", (round_up(n, 128),), (128,), arguments)


@case
def biquad_bank(rng: Generator) -> Case:
    """Filter 1,024 channels of sound, 2,000 samples each."""
    channels, samples = 1024, 2000
    sound = Buffer(random_floats(rng, samples, channels) - 0.5)
    sections = Buffer(np.tile(np.array([0.2, 0.4, 0.2, -0.5, 0.2], float32), 4))
    arguments = (sound, zeros(samples, channels), sections, uint32(channels), uint32(samples))
    return Case("biquad_bank", "biquad_bank", (channels,), (32,), arguments)


@case
def mdct(rng: Generator) -> Case:
    """Transform 60 overlapping frames of 512 samples."""
    half, frames = 256, 60
    sound = Buffer(random_floats(rng, (frames + 1) * half) - 0.5)
    return Case("mdct", "mdct", (half, frames), (64, 1), (sound, zeros(frames, half), int32(half)))


@case
def lut3d(rng: Generator) -> Case:
    """Grade colours of a frame by a cube of 33 x 33 x 33."""
    pixels, n = 1280 * 720, 33
    cube = Buffer(random_floats(rng, n, n, n, 4) * 255)
    smooth = (np.cumsum(rng.integers(-3, 4, (pixels, 4)), axis=0) % 256).astype(uint8)
    arguments = (Buffer(smooth), zeros(pixels, 4, dtype=uint8), cube, int32(n))
    return Case("lut3d", "lut3d", (pixels,), (64,), arguments)


@case
def lens_image(rng: Generator) -> Case:
    """Take out a lens's distortion, from an image object."""
    width, height = 1024, 768
    arguments = (
        Image(random_floats(rng, height, width, 4)), zeros(height, width, 4),
        float32(-0.12), float32(0.03),
    )  # fmt: skip
    return Case("lens_image", "lens", (width, height), (16, 8), arguments)


@case
def cfar_radar(rng: Generator) -> Case:
    """Detect echoes in a map of 1,024 ranges and 128 speeds, 160 cells around each."""
    ranges, speeds = 1024, 128
    echoes = Buffer(rng.normal(size=(speeds, ranges, 2)).astype(float32))
    numbers = (int32(ranges), int32(speeds), int32(1), int32(6), float32(9))
    arguments = (echoes, zeros(speeds, ranges, dtype=uint8), *numbers)
    return Case("cfar_radar", "cfar", (ranges, speeds), (32, 4), arguments)
