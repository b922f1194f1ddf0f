"""Tells that a launch takes another time than it did: a two-sided CUSUM on logarithms.

``S+ = max(0, S+ + x - k)``, ``S- = max(0, S- - x - k)``, alarm at ``S > h`` (E. S. Page,
"Continuous inspection schemes", Biometrika 41, 1954), with x the logarithm of measured over
predicted in units of its usual deviation, k = 0.5 and h = 8. By Siegmund's approximation two such
sums raise a false alarm once in about 9,500 observations of normal noise, and a lasting shift of
two deviations is seen after about six. x is cut at four deviations, so that no single outlier
raises one and three in a row do.
"""

import math
from dataclasses import dataclass

ALLOWANCE = 0.5
"""k: half the smallest shift that matters, in deviations."""
THRESHOLD = 8.0
"""h: evidence that suffices, in deviations."""
LIMIT = 4.0
"""Largest deviation that one observation may count for."""


@dataclass(slots=True)
class Drift:
    """Evidence that times have shifted, upwards and downwards.

    Parameters
    ----------
    up, down : float
        S+ and S-.

    Examples
    --------
    >>> drift = Drift()
    >>> [drift.add(1.3, 1.0, 0.05) for _ in range(3)]
    [False, False, True]
    """

    up: float = 0.0
    down: float = 0.0

    def add(self, measured_s: float, predicted_s: float, deviation: float) -> bool:
        """Take an observation; tell whether times have shifted.

        Parameters
        ----------
        measured_s, predicted_s : float
            In seconds.
        deviation : float
            Usual standard deviation of the logarithm of their ratio.
        """
        x = math.log(measured_s / predicted_s) / deviation
        x = min(max(x, -LIMIT), LIMIT)
        self.up = max(0.0, self.up + x - ALLOWANCE)
        self.down = max(0.0, self.down - x - ALLOWANCE)
        return max(self.up, self.down) > THRESHOLD

    @property
    def is_calm(self) -> bool:
        """Whether nothing speaks for a shift."""
        return not (self.up or self.down)

    def reset(self) -> None:
        """Forget the evidence."""
        self.up = self.down = 0.0
