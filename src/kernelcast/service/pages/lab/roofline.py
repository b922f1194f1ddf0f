"""The roofline of a launch on a machine."""

from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.machine import MachineDescription
from kernelcast.reports.charts import Axis, Chart, Point, Series
from kernelcast.service.pages.filters import write_digits, write_seconds
from kernelcast.service.pages.pictures import Picture

_COMPUTING = ("fp32", "fp64", "fp16", "int32")
_MEMORIES = ("DRAM", "MEM")
_REACH = 64.0


def make_roofline(
    kernel: str, estimate: AnalyticEstimate, machine: MachineDescription
) -> Picture | None:
    """Draw the roofs of a machine and the launch below them; None where a roof is not known.

    What the model says each part would take alone gives operations and bytes their rates: the
    roofs are those that its time was made of.
    """
    kind = max(_COMPUTING, key=lambda one: estimate.limiters.get(one, 0.0))
    peak = next((one.peak_per_s for one in machine.instructions if one.name == kind), None)
    memory = next((one for one in _MEMORIES if estimate.limiters.get(one)), None)
    moved = sum(one for name, one in estimate.volumes.items() if memory and memory in name)
    busy_s = estimate.limiters.get(kind, 0.0)
    if peak is None or memory is None or not moved or not busy_s:
        return None
    bandwidth = moved / estimate.limiters[memory]
    operations = busy_s * peak.value
    intensity, rate = operations / moved, operations / estimate.seconds
    ridge = peak.value / bandwidth
    left, right = min(intensity, ridge) / _REACH, max(intensity, ridge) * _REACH
    roof = [(left, left * bandwidth), (ridge, peak.value), (right, peak.value)]
    return Picture(
        name=f"{kernel}-{machine.id}-roofline",
        alternative=(
            f"Roofline of {machine.name}: {kernel} does {write_digits(intensity)} {kind} "
            f"operations per byte of {memory} in {write_seconds(estimate.seconds)}; the roofs "
            f"meet at {write_digits(ridge)}."
        ),
        caption=f"The launch below the roofs of {memory} bandwidth and of {kind}.",
        columns=("what", "operations_per_byte", "operations_per_s"),
        rows=[*(("roof", *one) for one in roof), (kernel, intensity, rate)],
        chart=Chart(
            x=Axis(title=f"{kind} operations per byte of {memory}", is_log=True),
            y=Axis(title="operations per second", unit="op/s", is_log=True),
            series=(
                Series(name=kernel, points=[Point(x=intensity, y=rate, label=kernel)]),
                Series(
                    name="roof", kind="line", points=[Point(x=one, y=other) for one, other in roof]
                ),
            ),
        ),
    )
