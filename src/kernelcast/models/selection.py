"""Several models, of which each fit keeps the one that predicts unseen groups best."""

from dataclasses import dataclass

from kernelcast.models.correction import CorrectionModel, FittedCorrection
from kernelcast.records.errors import InputError
from kernelcast.records.training_table import Texts, TrainingTable


@dataclass(frozen=True, slots=True, kw_only=True)
class BestOf:
    """Chooses among models by their error out of group, within the rows it is given.

    Parameters
    ----------
    name : str
        What reports call it.
    candidates : tuple of CorrectionModel
        The plainest first: it wins where errors are equal.
    """

    name: str
    candidates: tuple[CorrectionModel, ...]

    def fit(self, table: TrainingTable, groups: Texts | None = None) -> FittedCorrection:
        """Fit all and keep the best; see `kernelcast.models.protocol.TimeModel.fit`.

        Raises
        ------
        InputError
            If none of them can be fitted.
        """
        fitted = [one.fit(table, groups) for one in self.candidates]
        if not fitted:
            msg = f"model {self.name}: has no candidates; name at least one"
            raise InputError(msg)
        return min(fitted, key=lambda one: one.inner_error)
