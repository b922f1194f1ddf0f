"""The picture in double precision, all rays marching together."""

import numpy as np

SMALL: dict[str, int] = {"WIDTH": 60, "HEIGHT": 44}
RTOL: float = 2e-2


def _measure_distance(points: np.ndarray, spheres: np.ndarray) -> np.ndarray:
    """Measure the distance of every point from the nearest surface."""
    to_centres = np.linalg.norm(points[:, None, :] - spheres[None, :, :3], axis=2)
    return np.asarray(np.minimum(points[:, 1] + 1.0, (to_centres - spheres[:, 3]).min(axis=1)))


def _normalise(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors to length one."""
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True))


def _march(origin: np.ndarray, rays: np.ndarray, spheres: np.ndarray) -> np.ndarray:
    """March camera rays and return the depth of each, NaN where nothing was hit."""
    t = np.zeros(len(rays))
    depth = np.full(len(rays), np.nan)
    active = np.arange(len(rays))
    for _ in range(96):
        d = _measure_distance(origin + t[active, None] * rays[active], spheres)
        hit = d < 0.001
        depth[active[hit]] = t[active[hit]]
        active, d = active[~hit], d[~hit]
        t[active] += d
        active = active[t[active] < 20.0]
    return depth


def _shade(start: np.ndarray, sun: np.ndarray, spheres: np.ndarray) -> np.ndarray:
    """Return the share of the light that reaches each starting point."""
    light = np.ones(len(start))
    t = np.full(len(start), 0.05)
    active = np.arange(len(start))
    for _ in range(48):
        d = _measure_distance(start[active] + t[active, None] * sun, spheres)
        blocked = d < 0.002
        light[active[blocked]] = 0.0
        active, d = active[~blocked], d[~blocked]
        light[active] = np.minimum(light[active], 8.0 * d / t[active])
        t[active] += d
        active = active[t[active] < 6.0]
    return light


def expected(
    inputs: list[np.ndarray | np.generic | None], parameters: dict[str, int]
) -> dict[int, np.ndarray]:
    """Return brightness and depth of every pixel."""
    width, height = parameters["WIDTH"], parameters["HEIGHT"]
    spheres = np.asarray(inputs[2], dtype=np.float64).reshape(-1, 4)
    y, x = (axis.reshape(-1) for axis in np.indices((height, width)))
    forward = np.full(x.size, 1.6)
    rays = _normalise(
        np.stack([(2.0 * x - width) / height, (height - 2.0 * y) / height, forward], axis=1)
    )
    eye, sun = np.array([0.0, 0.6, -4.0]), _normalise(np.array([0.5, 0.8, -0.4]))

    depth = _march(eye, rays, spheres)
    hit = np.flatnonzero(~np.isnan(depth))
    points = eye + depth[hit, None] * rays[hit]
    steps = 0.01 * np.eye(3)
    normals = _normalise(
        np.stack(
            [
                _measure_distance(points + h, spheres) - _measure_distance(points - h, spheres)
                for h in steps
            ],
            axis=1,
        )
    )
    facing = np.maximum(normals @ sun, 0.0)
    brightness = np.full(x.size, 0.1)
    brightness[hit] = 0.2
    lit = facing > 0.0
    reaching = _shade(points[lit] + 0.02 * normals[lit], sun, spheres)
    brightness[hit[lit]] += 0.8 * facing[lit] * reaching
    filled = np.where(np.isnan(depth), 20.0, depth)
    return {0: brightness.astype(np.float32), 1: filled.astype(np.float32)}
