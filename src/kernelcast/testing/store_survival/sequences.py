"""Takes random steps, and counts in the end what of the acknowledged is not there."""

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from kernelcast.testing.store_survival.commands import ImportFile, run_command, run_job
from kernelcast.testing.store_survival.databases import TestedDatabase
from kernelcast.testing.store_survival.forking import Forked
from kernelcast.testing.store_survival.outcomes import Outcome
from kernelcast.testing.store_survival.serving import ForkedService

_PATIENCE_S: Final = 120.0
_PROBLEM: Final[dict[str, Any]] = {
    "code": "kernel void fill(global float *a) { a[get_global_id(0)] = 1.0f; }",
    "kernel": "fill",
    "global_size": [1024],
    "local_size": [64],
    "args": [{"buffer": "float32", "count": 1024}],
}
# The page *Accuracy* reads the store once more for a device that a shipped model knows.
_DEVICES: Final = ("far-away", "intel-amd-epyc-1512")
_PAGES: Final = ("/accuracy", "/accuracy", "/accuracy", "/jobs", "/lab", "/devices", "/comparing")
_READING: Final = (
    ("data", "ls"), ("data", "ls", "--rows"), ("data", "ls", "--by", "device", "--json"),
    ("data", "check"), ("data", "export", "all.parquet"), ("serve", "token", "list"),
)  # fmt: skip
_REFUSED: Final = (("data", "import", "{store}"), ("data", "export", "{store}"))
_BAD_INPUT: Final = 2
_SEVERAL: Final = 30


def run_sequence(
    seed: int,
    database: TestedDatabase,
    import_files: Sequence[ImportFile],
    folder: Path,
    *,
    steps: int = 8,
) -> Outcome:
    """Run one sequence; the same seed draws the same steps, the clock decides how they meet.

    Parameters
    ----------
    steps : int
        How many steps are taken before the last kill -9.
    """
    sequence = _Sequence(seed, database, import_files, folder)
    try:
        return sequence.run(steps)
    finally:
        sequence.end()


class _Sequence:
    """One sequence at work, and what was acknowledged in it."""

    def __init__(
        self, seed: int, database: TestedDatabase, import_files: Sequence[ImportFile], folder: Path
    ) -> None:
        self._seed = seed
        self._rng = random.Random(seed)
        self._database = database
        self._import_files = import_files
        self._data = folder
        self._service = ForkedService(folder, database.place)
        self._running: list[Forked] = []
        self._names = iter(range(10**9))
        self._steps: Counter[str] = Counter()
        self._measurements: set[str] = set()
        self._keys: set[str] = set()
        self._tokens: dict[str, bool] = {}
        self._trouble: list[str] = []

    def run(self, steps: int) -> Outcome:
        """Take the steps, kill everything, and look."""
        rng = self._rng
        kind = rng.choices(("filled", "none", "older"), (8, 1, 1))[0]
        self._database.prepare(self._data, kind)
        self._service.start()
        names = list(_STEPS)
        weights = [weight for _, weight in _STEPS.values()]
        for name in rng.choices(names, weights, k=steps):
            self._steps[name] += 1
            _STEPS[name][0](self)
        self._observe()
        self._steps["kill"] += 1
        self.end()
        return self._judge()

    def end(self) -> None:
        """Kill all that still runs."""
        self._service.kill()
        for one in self._running:
            one.kill()

    def _judge(self) -> Outcome:
        held = self._database.look(self._data)
        lost = len(self._measurements.difference(held.measurements))
        lost += len(self._keys.difference(held.keys))
        tokens_lost = sum(
            key not in held.tokens or (is_revoked and not held.tokens[key])
            for key, is_revoked in self._tokens.items()
        )
        return Outcome(
            seed=self._seed,
            steps=dict(self._steps),
            acknowledged=len(self._measurements) + len(self._keys),
            lost=lost,
            tokens_acknowledged=len(self._tokens),
            tokens_lost=tokens_lost,
            damage=held.damage,
            trouble=self._trouble,
        )

    def _observe(self) -> None:
        """Report a batch."""
        names = [f"{self._seed}-{next(self._names)}" for _ in range(self._rng.randint(1, _SEVERAL))]
        device = self._rng.choice(_DEVICES)
        batch = [
            {"key": name, "problem": _PROBLEM, "device": {"id": device},
             "seconds": self._rng.uniform(0.1, 0.2)}
            for name in names
        ]  # fmt: skip
        status, content = self._service.ask("POST", "/v1/observations", {"observations": batch})
        if status == HTTPStatus.OK and content["added"] + content["known"] == len(names):
            self._measurements.update(names)
        else:
            self._trouble.append(f"observations were answered {status} {content}")

    def _observe_in_a_row(self) -> None:
        for _ in range(self._rng.randint(2, 8)):
            self._observe()

    def _look_at_a_page(self) -> None:
        path = self._rng.choice(_PAGES)
        status, _ = self._service.ask("GET", path)
        if status != HTTPStatus.OK:
            self._trouble.append(f"{path} was answered {status}")

    def _read(self) -> None:
        self._run(self._rng.choice(_READING))

    def _give_the_store_as_a_file(self) -> None:
        """Name the store where a file is wanted; it is refused and stays."""
        words = [one.format(store=self._database.place) for one in self._rng.choice(_REFUSED)]
        if (self._data / self._database.place).is_file():
            self._run(words, expected=_BAD_INPUT)

    def _import(self) -> None:
        import_file, words = self._choose_import_file()
        if self._run(words) == 0:
            self._keys |= import_file.keys

    def _import_beside_observing(self) -> None:
        """Import while observations come, and perhaps pages are read."""
        import_file, words = self._choose_import_file()
        process = self._start(words)
        while process.is_running():
            self._rng.choice((self._observe, self._observe, self._look_at_a_page))()
        if process.wait(_PATIENCE_S) == 0:
            self._keys |= import_file.keys
        else:
            self._trouble.append(f"{' '.join(words)} failed")

    def _kill_an_import(self) -> None:
        process = self._start(self._choose_import_file()[1])
        time.sleep(self._rng.uniform(0, 0.15))
        process.kill()

    def _change_tokens(self) -> None:
        """Make a token, or revoke one that was made."""
        known = [key for key, is_revoked in self._tokens.items() if not is_revoked]
        if known and self._rng.random() < 0.5:
            chosen = self._rng.choice(known)
            if self._run(("serve", "token", "revoke", chosen)) == 0:
                self._tokens[chosen] = True
            return
        if self._run(("serve", "token", "create", "somebody", "--json"), log="token") == 0:
            text = (self._data / "token.log").read_text(encoding="utf-8")
            self._tokens[json.loads(text[text.rindex("{") :])["id"]] = False

    def _do_a_job(self) -> None:
        """Run a job's process to its end, or kill it."""
        process = run_job(self._rng.choice(("validate", "train")), self._data, self._database.place)
        self._running.append(process)
        if self._rng.random() < 0.3:
            time.sleep(self._rng.uniform(0, 0.3))
            process.kill()
            return
        if process.wait(_PATIENCE_S) != 0:
            self._trouble.append("a job's process failed")

    def _have_a_job_done(self) -> None:
        """Have the service start a job, which goes on beside the next steps."""
        order = {"kind": "validate", "options": {"models": ["two_point", "linear"]}}
        status, content = self._service.ask("POST", "/v1/jobs", order)
        if status != HTTPStatus.ACCEPTED:
            self._trouble.append(f"a job was answered {status} {content}")

    def _kill(self) -> None:
        self._service.kill()
        self._service.start()

    def _kill_while_a_command_runs(self) -> None:
        """Kill the service beside a command that reads or imports, and start it again."""
        import_file, importing = self._choose_import_file()
        words = self._rng.choice((importing, self._rng.choice(_READING)))
        process = self._start(words)
        time.sleep(self._rng.uniform(0, 0.1))
        self._service.kill()
        if process.wait(_PATIENCE_S) == 0:
            self._keys |= import_file.keys if words is importing else frozenset()
        self._service.start()

    def _restart(self) -> None:
        status = self._service.stop()
        if status not in {0, -signal.SIGTERM}:
            self._trouble.append(f"the service ended with status {status}")
        self._service.start()

    def _choose_import_file(self) -> tuple[ImportFile, tuple[str, ...]]:
        import_file = self._rng.choice(self._import_files)
        if self._rng.random() < 0.3:
            return import_file, ("data", "merge", str(import_file.store))
        return import_file, ("data", "import", str(import_file.parquet))

    def _start(self, words: Sequence[str], log: str = "commands") -> Forked:
        process = run_command(words, self._data, self._database.place, self._data / f"{log}.log")
        self._running.append(process)
        return process

    def _run(self, words: Sequence[str], *, expected: int = 0, log: str = "commands") -> int | None:
        status = self._start(words, log).wait(_PATIENCE_S)
        if status != expected:
            self._trouble.append(f"{' '.join(words)} ended with status {status}")
        return status


_STEPS: Final[dict[str, tuple[Callable[[_Sequence], None], int]]] = {
    "observe": (_Sequence._observe_in_a_row, 20),  # noqa: SLF001 - its own steps
    "page": (_Sequence._look_at_a_page, 20),  # noqa: SLF001
    "command": (_Sequence._read, 18),  # noqa: SLF001
    "import": (_Sequence._import, 8),  # noqa: SLF001
    "import beside observations": (_Sequence._import_beside_observing, 5),  # noqa: SLF001
    "kill an import": (_Sequence._kill_an_import, 4),  # noqa: SLF001
    "store named as a file": (_Sequence._give_the_store_as_a_file, 3),  # noqa: SLF001
    "token": (_Sequence._change_tokens, 6),  # noqa: SLF001
    "job": (_Sequence._do_a_job, 5),  # noqa: SLF001
    "job of the service": (_Sequence._have_a_job_done, 1),  # noqa: SLF001
    "kill": (_Sequence._kill, 8),  # noqa: SLF001
    "kill beside a command": (_Sequence._kill_while_a_command_runs, 4),  # noqa: SLF001
    "restart": (_Sequence._restart, 4),  # noqa: SLF001
}
"""Steps and how often they are taken, relative to each other."""
