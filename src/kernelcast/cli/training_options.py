"""Options that training, validation, comparison and the registry's commands share."""

from typing import Any

import click

from kernelcast.cli import options as option
from kernelcast.launches.data_folder import STORE_VARIABLE
from kernelcast.training.registry import MODELS_VARIABLE

DATA: Any = option.given(
    "--data --rows PATH",
    "Observations: a store (file or URL), a Parquet file or a folder of them, a table of your own "
    "(CSV or Parquet), a tuner's results (T4), or `shipped`; may be repeated.  [default: "
    "KERNELCAST_STORE, or observations.sqlite in the data folder]",
)
JOBS: Any = option.given(
    "--jobs N", "Processes that work side by side.  [default: one per processor]",
    type=click.IntRange(min=1), default=None, callback=lambda _, __, jobs: jobs or -1,
)  # fmt: skip
REGISTRY: Any = option.given(
    "--registry URL",
    "Where models are kept: a folder or any URL that fsspec knows.  "
    f"[default: {MODELS_VARIABLE}, or models in the data folder]",
)
_LEAST_WORK_GROUPS: Any = option.given(
    "--least-work-groups N", "Leave out launches of fewer work-groups.",
    type=click.IntRange(min=0),
)  # fmt: skip
_SHORTEST: Any = option.given(
    "--shortest SECONDS",
    "Leave out launches that took less time.",
    type=click.FloatRange(min=0),
)  # fmt: skip
ROW_FILTER: Any = option.settings(shortest_s=_SHORTEST, least_work_groups=_LEAST_WORK_GROUPS)
STORE: Any = option.given(
    "--store URL",
    "The store: a SQLite file, or postgresql://user@host/database.  "
    f"[default: {STORE_VARIABLE}, or observations.sqlite in the data folder]",
    envvar=STORE_VARIABLE,
)
