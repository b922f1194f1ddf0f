"""The paper's own results, to be shown beside ours and labelled as its own.

Source: sampling-svr, section 6.2 (mean errors), Table 3 (error classes), sections 6.4 and 1
(sampling cost). All errors are |predicted - measured| / measured.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedDevice:
    """What the paper says of one device.

    Parameters
    ----------
    name : str
        The device.
    linear, learned : float or None
        Mean errors as shares; None where there was no learned model.
    sampling_cost : float
        Mean sampling time over the kernels' time.
    classes : tuple of (float, float, float)
        Of Table 3: mean errors of linear and learned model and the gain, as printed there, in the
        classes 0-5 %, 5-10 % and beyond; empty where the paper gives none.
    """

    name: str
    linear: float
    learned: float | None
    sampling_cost: float
    classes: tuple[tuple[float, float, float], ...] = ()


PUBLISHED = (
    PublishedDevice(
        name="GTX 280", linear=0.0719, learned=0.0642, sampling_cost=0.08,
        classes=(
            (0.0188, 0.0236, -0.0048), (0.0665, 0.0313, 0.0350), (0.2124, 0.1867, 0.0257),
        ),
    ),
    PublishedDevice(
        name="GTX 580", linear=0.0572, learned=0.0476, sampling_cost=0.08,
        classes=(
            (0.0203, 0.0213, -0.0010), (0.0759, 0.0657, 0.0101), (0.1846, 0.1341, 0.0506),
        ),
    ),
    PublishedDevice(name="GTX 680", linear=0.10, learned=None, sampling_cost=0.08),
    PublishedDevice(name="HD 6970", linear=0.0810, learned=0.0791, sampling_cost=0.15),
)  # fmt: skip
"""Every device of the paper; it gives the cost for NVIDIA (8 %) and AMD (15 %) as a whole."""
