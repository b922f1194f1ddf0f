"""Answers of the GPU model as JSON."""

from kernelcast.launches.modelling.comparison import Comparison
from kernelcast.launches.modelling.gpu_estimates import Configuration
from kernelcast.launches.modelling.gpu_sweeps import Sweep


def configuration_to_json(name: str, found: Configuration) -> dict[str, object]:
    """Give one answer; times are in seconds, volumes in bytes of the whole launch."""
    estimate = found.estimate
    kernel = {"kernel": name} if name else {}
    return {
        **kernel,
        "machine": estimate.machine,
        "local_size": list(found.local_size),
        "fold": found.fold_text,
        "updates": found.updates,
        "seconds": estimate.seconds,
        "limiter": estimate.limiter,
        "limiters": dict(estimate.limiters),
        "volumes": dict(estimate.volumes),
        "quantities": dict(estimate.quantities),
        "notes": list(estimate.notes),
    }


def sweep_to_json(name: str, machine: str, sweep: Sweep) -> dict[str, object]:
    """Give all configurations of a sweep, fastest first."""
    return {
        "kernel": name,
        "machine": machine,
        "configurations": [configuration_to_json("", one) for one in sweep.configurations],
        "refused": [{"configuration": label, "reason": reason} for label, reason in sweep.refused],
    }


def comparison_to_json(found: Comparison) -> dict[str, object]:
    """Give measured and predicted values of one quantity, with what they say of the model."""
    return {
        "quantity": found.quantity,
        "mean_error": found.mean_error,
        "bias": found.bias,
        "kendall_tau": found.rank_correlation,
        "launches": [
            {"launch": label, "measured": measured, "predicted": predicted}
            for label, measured, predicted in zip(
                found.labels, found.measured, found.predicted, strict=True
            )
        ],
    }
