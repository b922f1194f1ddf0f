"""Records as pandas DataFrames, for users: a row each, a column per fact, units in the names."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol, TypeAlias

from kernelcast.records.errors import explain_missing

if TYPE_CHECKING:
    import pandas as pd

Frame: TypeAlias = "pd.DataFrame"
"""For those who take frames and never make one."""


class Tabular(Protocol):
    """A record that can be a row."""

    def to_row(self) -> Mapping[str, object]:
        """List its facts by the names of columns, None for what is absent."""


def to_frame(records: Iterable[Tabular]) -> "pd.DataFrame":
    """Make a DataFrame of records, such as the estimates of many launches on many devices.

    Parameters
    ----------
    records : iterable of Tabular
        Estimates, answers of devices or of launches, observations, pairs of two machines' numbers.

    Returns
    -------
    DataFrame
        A row each, in their order, and a column for each fact that one of them has.
    """
    return make_frame(record.to_row() for record in records)


def make_frame(rows: Iterable[Mapping[str, object]]) -> "pd.DataFrame":
    """Make a frame of rows; a column that a row lacks is absent in it."""
    try:
        import pandas as pd  # takes 0.25 s, and most programs ask for no frame
    except ModuleNotFoundError as error:
        raise explain_missing(error) or error from error

    return pd.DataFrame([*rows])
