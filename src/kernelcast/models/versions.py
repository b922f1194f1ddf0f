"""Versions of what computes, for reports and model files."""

from importlib.metadata import version

_COMPUTING = ("kernelcast", "numpy", "scipy", "scikit-learn", "skops")


def list_versions() -> dict[str, str]:
    """Give the versions of the libraries that a model's numbers depend on."""
    return {name: version(name) for name in _COMPUTING}
