"""Records as pandas DataFrames, for users: a row each, a column per fact, units in the names."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import pandas as pd

Frame: TypeAlias = "pd.DataFrame"
"""For those who take frames and never make one."""


def make_frame(rows: Iterable[Mapping[str, object]]) -> "pd.DataFrame":
    """Make a frame of rows; a column that a row lacks is absent in it."""
    import pandas as pd  # takes 0.25 s, and most programs ask for no frame

    return pd.DataFrame([*rows])
