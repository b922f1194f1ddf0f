"""What the predictor service remembers beside observations: tokens, jobs, audit, problems."""

from kernelcast.records.service_state import AnswerRecord
from kernelcast.service_state.answers import AnswerFilter, Comparison, make_id
from kernelcast.service_state.state import (
    OBSERVATIONS_CHANGED,
    TOKENS_CHANGED,
    ServiceState,
    find_state,
    open_state,
)
from kernelcast.training_data.store import AddedRows, Store, StoreError

__all__ = [
    "OBSERVATIONS_CHANGED",
    "TOKENS_CHANGED",
    "AddedRows",
    "AnswerFilter",
    "AnswerRecord",
    "Comparison",
    "ServiceState",
    "Store",
    "StoreError",
    "find_state",
    "make_id",
    "open_state",
]
