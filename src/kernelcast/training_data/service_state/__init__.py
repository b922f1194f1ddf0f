"""What the predictor service remembers, in tables beside the observations."""

from kernelcast.training_data.service_state.problems import OBSERVATIONS_CHANGED
from kernelcast.training_data.service_state.state import ServiceState, find_state, open_state

__all__ = ["OBSERVATIONS_CHANGED", "ServiceState", "find_state", "open_state"]
