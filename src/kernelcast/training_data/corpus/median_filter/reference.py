"""The median filter of SciPy, one colour after the other."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.ndimage import median_filter

from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the filtered image."""
    image = np.asarray(values[0]).reshape(parameters["HEIGHT"], parameters["WIDTH"], 4)
    filtered = median_filter(image, size=(3, 3, 1), mode="constant", cval=0)
    return {1: np.asarray(filtered)}


REFERENCES = {"median": Reference(expected=expected, small={"WIDTH": 131, "HEIGHT": 70})}
