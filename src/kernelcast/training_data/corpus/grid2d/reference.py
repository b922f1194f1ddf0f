"""The steps with whole fields shifted, and with SciPy's filters."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import ndimage

from kernelcast.training_data.reference import Array, Reference, Value

_SIDES = ((0, 1), (0, -1), (1, 0), (-1, 0))
_SMALL = {"HEIGHT": 48, "WIDTH": 256}


def conduct(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the temperatures after a step."""
    heat, material = (_shape(value, parameters) for value in values[:2])
    flow = np.zeros_like(heat)
    for shift in _SIDES:
        other = np.roll(material, shift, axis=(0, 1))
        mean = 2.0 / (1.0 / material + 1.0 / other)
        flow += mean * (np.roll(heat, shift, axis=(0, 1)) - heat)
    after = heat.copy()
    after[1:-1, 1:-1] += _number(values[5]) * flow[1:-1, 1:-1]
    return {2: after.astype(np.float32)}


def swing(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the field of the step after."""
    pitch = parameters["PITCH"]
    now, before, speed = (
        np.asarray(value, dtype=np.float64).reshape(-1, pitch) for value in values[:3]
    )
    weights = np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / 12.0
    bend = sum(ndimage.correlate1d(now, weights, axis=axis) for axis in (0, 1))
    inner = (slice(2, -2), slice(2, -2))
    before[inner] = (2.0 * now - before + speed * bend)[inner]
    return {1: before.astype(np.float32)}


def relax_plate(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the plate less its operator, which is Laplace's applied twice."""
    bend = np.pad(_shape(values[0], parameters), 2, mode="edge")
    twice = ndimage.laplace(ndimage.laplace(bend))
    return {1: (bend - _number(values[4]) * twice)[2:-2, 2:-2].astype(np.float32)}


def relax_half(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the field with one colour's inner points relaxed."""
    field, charge = (_shape(value, parameters) for value in values[:2])
    around = sum(np.roll(field, shift, axis=(0, 1)) for shift in _SIDES)
    wanted = field + _number(values[5]) * ((around - charge) / 4.0 - field)
    y, x = np.indices(field.shape)
    is_mine = (x + y) % 2 == parameters["COLOUR"]
    is_mine[[0, -1]] = False
    is_mine[:, [0, -1]] = False
    return {0: np.where(is_mine, wanted, field).astype(np.float32)}


def live(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the next generation."""
    cells = np.asarray(values[0]).reshape(parameters["HEIGHT"], -1)
    alive = ndimage.convolve(cells, np.ones((3, 3), dtype=np.uint8), mode="wrap")
    return {1: ((alive == 3) | ((alive == 4) & (cells == 1))).astype(np.uint8)}


def flow(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return depth and momenta after a step."""
    h, u, v = (_shape(value, parameters) for value in values[:3])
    rate = _number(values[6])
    pressure = 4.905 * h**2
    through_x = (u, u**2 / h + pressure, u * v / h)
    through_y = (v, u * v / h, v**2 / h + pressure)
    after = {}
    for index, (field, along_x, along_y) in enumerate(
        zip((h, u, v), through_x, through_y, strict=True)
    ):
        mean = (_pair(field, 0, 1.0) + _pair(field, 1, 1.0)) / 4.0
        change = _pair(along_x, 1, -1.0) + _pair(along_y, 0, -1.0)
        after[3 + index] = (mean - rate * change).astype(np.float32)
    return after


def advance_field(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the electric field after half a step."""
    electric, magnetic_x, magnetic_y = (_shape(value, parameters) for value in values[:3])
    materials = np.asarray(values[3]).reshape(electric.shape)
    factors = np.asarray(values[4], dtype=np.float64).reshape(-1, 2)
    stays, adds = factors[materials, 0], factors[materials, 1]
    curl = np.diff(magnetic_y, axis=1)[1:] - np.diff(magnetic_x, axis=0)[:, 1:]
    inner = (slice(1, None), slice(1, None))
    electric[inner] = stays[inner] * electric[inner] + adds[inner] * curl
    return {0: electric.astype(np.float32)}


def react(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return both substances after a step."""
    now = np.asarray(values[0], dtype=np.float64).reshape(parameters["HEIGHT"], -1, 2)
    weights = np.array([[0.05, 0.2, 0.05], [0.2, -1.0, 0.2], [0.05, 0.2, 0.05]])
    bend = ndimage.convolve(now, weights[:, :, np.newaxis], mode="wrap")
    first, second = now[..., 0], now[..., 1]
    feed, kill = _number(values[3]), _number(values[4])
    eaten = first * second**2
    reaction = np.stack([feed * (1.0 - first) - eaten, eaten - (feed + kill) * second], axis=-1)
    after = now + np.asarray(values[2], dtype=np.float64) * bend + reaction
    return {1: after.reshape(-1, 2).astype(np.float32)}


def _pair(field: Array, axis: int, sign: float) -> Array:
    """Give the value after each place plus or minus the one before; ends are repeated."""
    return np.asarray(ndimage.correlate1d(field, [sign, 0.0, 1.0], axis=axis, mode="nearest"))


def _shape(value: Value, parameters: Mapping[str, int]) -> Array:
    return np.array(value, dtype=np.float64).reshape(parameters["HEIGHT"], -1)


def _number(value: Value) -> float:
    return float(np.asarray(value))


REFERENCES = {
    "heat_variable": Reference(expected=conduct, small=_SMALL, tolerance=1e-5),
    "wave_star": Reference(expected=swing, small=_SMALL, tolerance=1e-5),
    "plate": Reference(expected=relax_plate, small=_SMALL, tolerance=1e-5),
    "red_black": Reference(expected=relax_half, small=_SMALL, tolerance=1e-5),
    "life": Reference(expected=live, small=_SMALL),
    "shallow_water": Reference(expected=flow, small=_SMALL, tolerance=1e-5),
    "fdtd_2d": Reference(expected=advance_field, small=_SMALL, tolerance=1e-5),
    "gray_scott": Reference(expected=react, small=_SMALL, tolerance=1e-5),
}
