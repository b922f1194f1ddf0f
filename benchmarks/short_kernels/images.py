"""Images, rows of numbers, and a stage of a Fourier transform."""

from numpy import float32, int32, uint8
from numpy.random import Generator

from short_kernels.cases import Buffer, Case, Restored, case, random_floats, zeros


@case
def sobel_u8(rng: Generator) -> Case:
    """Find edges in an image of bytes."""
    n = 2048
    image = Buffer(rng.integers(0, 256, (n, n)).astype(uint8))
    arguments = (image, zeros(n, n, dtype=uint8), int32(n), int32(n))
    return Case("sobel_u8", "sobel", (n, n), (32, 8), arguments)


@case
def bilateral(rng: Generator) -> Case:
    """Smooth an image and keep its edges, 121 neighbours each."""
    n = 512
    numbers = (int32(n), int32(n), int32(5), float32(0.05), float32(20))
    image = Buffer(random_floats(rng, n, n))
    return Case("bilateral", "bil", (n, n), (16, 16), (image, zeros(n, n), *numbers))


@case
def median3_rgba(rng: Generator) -> Case:
    """Take the median of nine pixels of four bytes."""
    n = 1024
    image = Buffer(rng.integers(0, 256, (n, n, 4)).astype(uint8))
    arguments = (image, zeros(n, n, 4, dtype=uint8), int32(n), int32(n))
    return Case("median3_rgba", "med", (n, n), (16, 16), arguments)


@case
def fft_stage(rng: Generator) -> Case:
    """Do a stage of a fast Fourier transform in place."""
    n = 1 << 21
    arguments = (Restored(random_floats(rng, n, 2)), int32(1 << 10), int32(n))
    return Case("fft_stage", "fft", (n // 2,), (128,), arguments)


@case
def row_normalize_inplace(rng: Generator) -> Case:
    """Normalise rows in place, a row per work-item."""
    rows, columns = 16384, 1536
    arguments = (Buffer(random_floats(rng, rows, columns)), int32(columns))
    return Case("row_normalize_inplace", "norm", (rows,), (16,), arguments)


@case
def scale_inplace(rng: Generator) -> Case:
    """Scale 64 MiB in place."""
    n = 1 << 24
    arguments = (Buffer(random_floats(rng, n)), float32(0.999))
    return Case("scale_inplace", "sc", (n // 4,), (128,), arguments)


@case
def transpose_naive(rng: Generator) -> Case:
    """Transpose a matrix."""
    n = 2048
    arguments = (Buffer(random_floats(rng, n, n)), zeros(n, n), int32(n))
    return Case("transpose_naive", "tr", (n, n), (16, 16), arguments)
