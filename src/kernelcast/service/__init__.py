"""The predictor service: estimates, observations, models and jobs over HTTP."""

from kernelcast.service.app import API_VERSION, create_app
from kernelcast.service.settings import Limits, ServiceSettings

__all__ = ["API_VERSION", "Limits", "ServiceSettings", "create_app"]
