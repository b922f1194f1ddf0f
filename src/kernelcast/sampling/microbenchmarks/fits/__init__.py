"""Curves turned into numbers: cache levels, bandwidths, saturation; pure numpy."""

from kernelcast.sampling.microbenchmarks.fits.bandwidths import fit_bandwidths
from kernelcast.sampling.microbenchmarks.fits.intervals import Interval
from kernelcast.sampling.microbenchmarks.fits.levels import CacheLevel, LatencyFit, fit_levels
from kernelcast.sampling.microbenchmarks.fits.saturation import Saturation, fit_saturation

__all__ = [
    "CacheLevel",
    "Interval",
    "LatencyFit",
    "Saturation",
    "fit_bandwidths",
    "fit_levels",
    "fit_saturation",
]
