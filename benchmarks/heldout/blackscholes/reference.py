"""Option prices in double precision with the same polynomial for the normal distribution."""

import numpy as np

SMALL: dict[str, int] = {"QUADS": 1250}
RTOL: float = 1e-3

_POLYNOMIAL = (1.330274429, -1.821255978, 1.781477937, -0.356563782, 0.319381530, 0.0)


def _evaluate_normal_cdf(x: np.ndarray) -> np.ndarray:
    """Evaluate the cumulative normal distribution after Abramowitz and Stegun 26.2.17."""
    k = 1.0 / (1.0 + 0.2316419 * np.abs(x))
    tail = 0.39894228 * np.exp(-0.5 * x * x) * np.polyval(_POLYNOMIAL, k)
    return np.asarray(np.where(x < 0.0, tail, 1.0 - tail))


def expected(
    inputs: list[np.ndarray | np.generic | None], parameters: dict[str, int]
) -> dict[int, np.ndarray]:
    """Return the prices of all calls and puts."""
    s, k, t = (
        np.ascontiguousarray(inputs[i]).view(np.float32).reshape(-1).astype(np.float64)
        for i in range(3)
    )
    rate, volatility = (float(np.asarray(inputs[i])) for i in (5, 6))
    spread = volatility * np.sqrt(t)
    d1 = (np.log(s / k) + (rate + 0.5 * volatility**2) * t) / spread
    discounted = k * np.exp(-rate * t)
    n1, n2 = _evaluate_normal_cdf(d1), _evaluate_normal_cdf(d1 - spread)
    call = s * n1 - discounted * n2
    put = discounted * (1.0 - n2) - s * (1.0 - n1)
    return {3: call.astype(np.float32), 4: put.astype(np.float32)}
