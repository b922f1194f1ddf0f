"""Evidence that times move away from what was answered."""

import math
import random

from kernelcast.service.predictions import Drift


def test_steady_times_raise_no_alarm_and_small_shifts_do() -> None:
    """Fewer than one alarm in a thousand observations; two deviations are seen within twenty."""
    rng = random.Random(3)
    drift = Drift()
    assert sum(drift.add(math.exp(rng.gauss(0, 0.05)), 1.0, 0.05) for _ in range(5000)) <= 5
    assert any(drift.add(math.exp(rng.gauss(0.1, 0.05)), 1.0, 0.05) for _ in range(20))
