"""The predictor service: estimates, observations, models and jobs over HTTP."""

from kernelcast.service.app import create_app
from kernelcast.service.settings import API_VERSION, Limits, ServiceSettings

__all__ = ["API_VERSION", "Limits", "ServiceSettings", "create_app"]
