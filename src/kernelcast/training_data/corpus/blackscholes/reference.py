"""The formula of Black and Scholes with SciPy's normal distribution."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import ndtr

from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], _: Mapping[str, int]) -> dict[int, Array]:
    """Return call and put prices."""
    stock, strike, years, risk_free, volatility = (
        np.asarray(value, dtype=np.float64) for value in values[2:7]
    )
    spread = volatility * np.sqrt(years)
    d1 = (np.log(stock / strike) + (risk_free + volatility**2 / 2) * years) / spread
    discounted = strike * np.exp(-risk_free * years)
    call = stock * ndtr(d1) - discounted * ndtr(d1 - spread)
    put = call - stock + discounted
    return {0: call.astype(np.float32), 1: put.astype(np.float32)}


REFERENCES = {
    "blackscholes": Reference(expected=expected, small={"OPTIONS": 65_536}, tolerance=1e-4)
}
