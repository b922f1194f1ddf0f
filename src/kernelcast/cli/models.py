"""``kernelcast models``: its commands need scikit-learn, which takes long to import."""

from typing import Final

import click

from kernelcast.cli.lazy_group import LazyGroup

_REGISTRY: Final = "kernelcast.cli.train.registry"
_PLACES: Final = {
    "ls": f"{_REGISTRY}:list_versions",
    "pin": f"{_REGISTRY}:pin_version",
    "rollback": f"{_REGISTRY}:roll_back",
    "show": f"{_REGISTRY}:show_model",
    "unpin": f"{_REGISTRY}:unpin_version",
}


@click.group(
    cls=LazyGroup, places=_PLACES, short_help="Look at trained models, pin them, roll back."
)
def models() -> None:
    """Look at trained models, pin a version, roll back.

    A registry is a folder or URL with the versions of each model. Estimates use the pinned
    version, else the latest. It is `models` in the data folder (KERNELCAST_DATA), or what
    --registry or KERNELCAST_MODELS name.
    """
