"""``kernelcast model``: what the analytic models say, without running anything."""

import click

from kernelcast.cli.lazy_group import LazyGroup

_PLACES = {
    "cpu": "kernelcast.cli.model.cpu.command:cpu",
    "fit": "kernelcast.cli.model.fit:fit",
    "gpu": "kernelcast.cli.model.gpu.command:gpu",
    "scratchpad": "kernelcast.cli.model.scratchpad.command:scratchpad",
}


@click.group(
    cls=LazyGroup,
    places=_PLACES,
    short_help="Ask the analytic models of caches, bandwidth and latency.",
)
def model() -> None:
    """Ask the analytic models: time from addresses and a machine description, nothing is run."""
