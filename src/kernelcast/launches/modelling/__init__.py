"""Inputs of the analytic models: launches from source, text, YAML or a code generator."""
