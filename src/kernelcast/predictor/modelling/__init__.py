"""Inputs of the analytic models: launches from source, text, YAML or a code generator."""

from kernelcast.predictor.modelling.folding import fold
from kernelcast.predictor.modelling.launches import model_launch

__all__ = ["fold", "model_launch"]
