"""What the predictor service remembers, in tables beside the observations."""

from kernelcast.training_data.service_state.state import ServiceState, open_state

__all__ = ["ServiceState", "open_state"]
