"""Random mixes of everything that uses a store at once, with kill -9 in between; counts losses.

A sequence is real processes over a real database: a service under uvicorn, commands, jobs. They
are forked from a process that has imported everything, so that thousands of them are affordable;
that process itself never opens a database.
"""

from kernelcast.testing.store_survival.databases import (
    PostgresqlDatabase,
    SqliteDatabase,
    TestedDatabase,
)
from kernelcast.testing.store_survival.forking import preload
from kernelcast.testing.store_survival.outcomes import Outcome, Summary, summarise
from kernelcast.testing.store_survival.sequences import run_sequence

__all__ = [
    "Outcome",
    "PostgresqlDatabase",
    "SqliteDatabase",
    "Summary",
    "TestedDatabase",
    "preload",
    "run_sequence",
    "summarise",
]
