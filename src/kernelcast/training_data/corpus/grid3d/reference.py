"""The steps with whole fields shifted, and with SciPy's filters."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import ndimage

from kernelcast.training_data.reference import Array, Reference, Value

_SMALL = {"NZ": 8, "NY": 32, "NX": 64}
_AXES = (2, 1, 0)


def advance_fields(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the electric field after half a step."""
    fields = [_shape(value, parameters) for value in values[:6]]
    stays, adds = _number(values[6]), _number(values[7])
    after = {}
    for index in range(3):
        second, third = (index + 1) % 3, (index + 2) % 3
        curl = _step(fields[3 + third], _AXES[second]) - _step(fields[3 + second], _AXES[third])
        wanted = stays * fields[index] + adds * curl
        fixed = np.zeros(wanted.shape, dtype=bool)
        fixed[0], fixed[:, 0], fixed[:, :, 0] = True, True, True
        after[index] = np.where(fixed, fields[index], wanted).astype(np.float32)
    return after


def diffuse(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the grid after a step; the cells around it stay."""
    shape = (-1, parameters["NY"] + 2, parameters["ROW"])
    now = np.asarray(values[0], dtype=np.float64).reshape(shape)
    distance = np.abs(np.indices((3, 3, 3)) - 1).sum(axis=0)
    weights = np.array([-24.0, 2.0, 1.0, 0.0])[distance]
    after = np.array(values[1]).reshape(shape)
    wanted = now + _number(values[4]) * ndimage.correlate(now, weights)
    after[1:-1, 1:-1, 1:-1] = wanted[1:-1, 1:-1, 1:-1]
    return {1: after}


def sound(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the field of the step after."""
    now, before, speed = (_shape(value, parameters) for value in values[:3])
    weights = np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / 12.0
    bend = sum(ndimage.correlate1d(now, weights, axis=axis) for axis in range(3))
    inner = (slice(2, -2),) * 3
    before[inner] = (2.0 * now - before + speed * bend)[inner]
    return {1: before.astype(np.float32)}


def relax_half(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the pressure with one colour's open inner cells relaxed."""
    pressure, divergence = (_shape(value, parameters) for value in values[:2])
    is_open = np.asarray(values[2]).reshape(pressure.shape) > 0
    total = -divergence
    for axis in range(3):
        for shift in (-1, 1):
            there = np.roll(is_open, shift, axis=axis)
            total = total + np.where(there, np.roll(pressure, shift, axis=axis), pressure)
    is_mine = (np.indices(pressure.shape).sum(axis=0) % 2 == parameters["COLOUR"]) & is_open
    inner = np.zeros_like(is_open)
    inner[1:-1, 1:-1, 1:-1] = True
    return {0: np.where(is_mine & inner, total / 6.0, pressure).astype(np.float32)}


def carry(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the smoke after a step."""
    smoke, *winds = (_shape(value, parameters) for value in values[:4])
    after = smoke.copy()
    for wind, axis in zip(winds, _AXES, strict=True):
        # nothing flows through the faces
        gap = np.diff(smoke, axis=axis)
        none = np.zeros_like(smoke.take([0], axis))
        before = np.concatenate([none, gap], axis=axis)
        behind = np.concatenate([gap, none], axis=axis)
        after += np.where(wind > 0, -wind * before, -wind * behind)
    return {4: after.astype(np.float32)}


def keep_edges(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the volume after a step."""
    now = _shape(values[0], parameters)
    sharpness, rate = _number(values[2]), _number(values[3])
    change = np.zeros_like(now)
    for axis in range(3):
        gap = np.diff(now, axis=axis)
        flow = gap * np.exp(-sharpness * gap**2)
        none = np.zeros_like(now.take([0], axis))
        change += np.diff(np.concatenate([none, flow, none], axis=axis), axis=axis)
    return {1: (now + rate * change).astype(np.float32)}


def spread(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the least labels of the neighbourhoods of cells that are not empty."""
    labels = np.asarray(values[0]).reshape(parameters["NZ"], parameters["NY"], -1)
    filled = np.where(labels < 0, np.iinfo(np.int32).max, labels)
    least = ndimage.minimum_filter(filled, size=3, mode="nearest")
    return {1: np.where(labels < 0, labels, least)}


def _step(field: Array, axis: int) -> Array:
    """Give each value less the one before it along an axis."""
    return field - np.roll(field, 1, axis=axis)


def _shape(value: Value, parameters: Mapping[str, int]) -> Array:
    shape = (parameters["NZ"], parameters["NY"], parameters["NX"])
    return np.array(value, dtype=np.float64).reshape(shape)


def _number(value: Value) -> float:
    return float(np.asarray(value))


REFERENCES = {
    "fdtd_3d": Reference(expected=advance_fields, small=_SMALL, tolerance=1e-5),
    "stencil_19": Reference(expected=diffuse, small=_SMALL, tolerance=1e-5),
    "acoustic": Reference(expected=sound, small=_SMALL, tolerance=1e-5),
    "relax_3d": Reference(expected=relax_half, small=_SMALL, tolerance=1e-5),
    "upwind": Reference(expected=carry, small=_SMALL, tolerance=1e-5),
    "diffuse_edges": Reference(expected=keep_edges, small=_SMALL, tolerance=1e-5),
    "spread_labels": Reference(expected=spread, small=_SMALL),
}
