"""What the page *Compare* says of a comparison."""

from typing import TYPE_CHECKING

from kernelcast.service.pages.filters import write_points, write_signed_share

if TYPE_CHECKING:
    from kernelcast.reports.accuracy.judging import Comparison, DeviceComparison, ExplainedError


def tell_verdict(comparison: "Comparison", device: "DeviceComparison") -> str:
    """Say which model is better on a device, and how sure that is.

    Percentage points, so that nobody takes them for a relative change.
    """
    if device.difference is None:
        return "No launch was answered by both models."
    better, points = _name_better(comparison, device.difference)
    if device.low is None or device.high is None:
        return (
            f"{better} is better by {points:.2f} points of mean error, on a single kernel: "
            "nothing is known of others."
        )
    interval = (
        f"{comparison.confidence * 100:g} % interval of the difference "
        f"{write_points(device.low)} to {write_points(device.high)} points ({comparison.method} "
        f"bootstrap over whole {comparison.resampled}s)"
    )
    if device.low <= 0 <= device.high:
        return (
            f"The two cannot be told apart: {better} is ahead by {points:.2f} points of mean "
            f"error, {interval} holds zero."
        )
    return f"{better} is better by {points:.2f} points of mean error, {interval}."


def tell_wins(comparison: "Comparison", device: "DeviceComparison") -> str:
    """Say how many kernels each model wins."""
    total = len(device.kernels)
    if not total:
        return ""
    first, second, nobody = (
        device.count_wins(one) for one in (comparison.first, comparison.second, None)
    )
    return (
        f"Of {total} kernels {comparison.first} is better on {first}, {comparison.second} on "
        f"{second}; on {nobody} they differ by no more than the noise of the measured times."
    )


def tell_explanation(one: "ExplainedError") -> str:
    """Say what the correction of a kernel was, and what would have been right."""
    return (
        f"corrected by {write_signed_share(one.attribution.correction)}, needed were "
        f"{write_signed_share(one.needed)}; error {one.error * 100:.1f} %, without the correction "
        f"{one.reference_error * 100:.1f} %"
    )


def _name_better(comparison: "Comparison", difference: float) -> tuple[str, float]:
    """Give the model with the smaller error, and by how many points."""
    better = comparison.second if difference < 0 else comparison.first
    return better, abs(difference) * 100
