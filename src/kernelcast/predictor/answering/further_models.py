"""Models of the registry that stand beside an answer."""

from dataclasses import replace

from kernelcast.predictor.answering.policy import MethodChoice
from kernelcast.predictor.answering.tasks import EstimateOutcome
from kernelcast.predictor.answering.trained_models import TrainedModels
from kernelcast.records.estimates import Estimate


def add_models(
    trained_models: TrainedModels,
    estimate: Estimate,
    outcome: EstimateOutcome,
    methods: MethodChoice,
) -> Estimate:
    """Put other models of the registry side by side."""
    row = outcome.row
    if row is None or not methods.models:
        return estimate
    from kernelcast.predictor.answering.forecasting import forecast_methods

    schema = row.vector.schema
    lookups = {
        name: trained_models.find(estimate.device_id, schema, name) for name in methods.models
    }
    models = {name: one.found.stored for name, one in lookups.items() if one.found}
    found_s = forecast_methods(models, row)
    failures = [
        f"{name} does not stand beside the answer: {'; '.join(one.failures)}"
        for name, one in lookups.items()
        if one.failures and not one.found
    ]
    return replace(
        estimate,
        estimates_s={**estimate.estimates_s, **found_s},
        warnings=(*estimate.warnings, *failures),
    )
