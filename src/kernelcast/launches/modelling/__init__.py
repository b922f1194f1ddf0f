"""Inputs of the analytic models: launches from source, text, YAML or a code generator."""

from kernelcast.launches.modelling.folding import fold
from kernelcast.launches.modelling.launches import model_launch

__all__ = ["fold", "model_launch"]
