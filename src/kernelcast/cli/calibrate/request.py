"""The command line of ``kernelcast calibrate`` as one checked record."""

from dataclasses import dataclass
from pathlib import Path

from kernelcast.calibration.calibration import CalibrationSettings, Effort
from kernelcast.records.errors import InputError
from kernelcast.reports.drawing import require_matplotlib
from kernelcast.reports.targets import check_target


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateRequest:
    """What was asked for; fields are the options."""

    device_ids: tuple[str, ...]
    is_quick: bool
    is_full: bool
    only: tuple[str, ...]
    wants_list: bool
    is_fresh: bool
    as_json: bool
    output: Path | None
    report: Path | None
    machine: str | None
    compared: tuple[str, str] | None

    def __post_init__(self) -> None:
        self._refuse_contradictions()
        if self.report is not None:
            _check_report(self.report)

    def settings(self) -> CalibrationSettings:
        """Give how devices are calibrated."""
        effort = Effort.QUICK if self.is_quick else Effort.FULL if self.is_full else Effort.NORMAL
        return CalibrationSettings(
            effort=effort, only=self.only, is_fresh=self.is_fresh, output=self.output
        )

    def _refuse_contradictions(self) -> None:
        if self.is_quick and self.is_full:
            msg = "--quick and --full were both given; give one, or none for what lies between"
            raise InputError(msg)
        measured = [
            name
            for name, value in (
                ("--device", self.device_ids), ("--quick", self.is_quick),
                ("--full", self.is_full), ("--only", self.only), ("--fresh", self.is_fresh),
                ("--output", self.output),
            )
            if value
        ]  # fmt: skip
        stored = "--machine" if self.machine else "--compare" if self.compared else ""
        if stored and measured:
            msg = f"{stored} measures nothing; leave out {', '.join(measured)}"
            raise InputError(msg)
        if self.compared and (self.machine or self.report):
            msg = "--compare prints a table; leave out --machine and --report"
            raise InputError(msg)


def _check_report(path: Path) -> None:
    """Find out before a calibration of minutes that its report could not be written."""
    require_matplotlib("--report")
    check_target(path)
    if path.suffix.lower() not in {".html", ".htm"}:
        msg = f"{path}: reports are written as HTML; end the name in .html"
        raise InputError(msg)
