"""What a job has been at, for people who look at it later."""

from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

# The log travels with every sign of progress: 6 KB at most.
_LINES: Final = 60
_LETTERS: Final = 80


class StageLog:
    """The last stages of a job with their times, kept beside its progress as ``log``."""

    def __init__(self, progress: Mapping[str, Any]) -> None:
        self._last = dict(progress)
        self._lines: deque[list[str]] = deque(progress.get("log", ()), maxlen=_LINES)
        self._stage: object = None

    def extend(self, progress: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give progress with the log; a stage that begins is a line."""
        self._last = dict(progress)
        stage = progress.get("stage")
        if stage and stage != self._stage:
            self._stage = stage
            return self.note(str(stage))
        return self._write()

    def note(self, text: str) -> Mapping[str, Any]:
        """Add a line; give the last progress with the log."""
        self._lines.append([datetime.now(UTC).isoformat(timespec="seconds"), text[:_LETTERS]])
        return self._write()

    def _write(self) -> Mapping[str, Any]:
        return {**self._last, "log": list(self._lines)} if self._lines else self._last
