"""Tries every attack of the table on a service and writes what each got.

``python benchmarks/service_attacks.py`` starts the application with fake devices in a folder of its
own, tries all attacks of `support.service_attacks`, then those on compilers once more on
each real device that is found, and writes ``results/service_attacks/summary.md``.

The service stands firm if an attack gets the status that it must get, the answer shows nothing of
a file that only the service may read and is the same for a file that is not there, nobody has read
that file, nothing was run for a caller without the right, and a good request is answered after it.
"""

import argparse
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from machine import describe_machine

from kernelcast.launches.devices import list_descriptions
from kernelcast.records.errors import NoDeviceError
from kernelcast.service import Limits, ServiceSettings, create_app
from kernelcast.service.backend import Backend
from support.service_attacks.attacks import ON_DEVICES, list_attacks
from support.service_attacks.target import AttackOutcome, Target, add_tokens, make_secret
from support.service_backend import FakeBackend, make_devices

with warnings.catch_warnings():
    # It wants httpx2 by now; httpx still works, and our own client speaks it.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

RESULTS = Path(__file__).parent / "results" / "service_attacks"
_LONGEST_MESSAGE = 160


@contextmanager
def open_target(
    folder: Path,
    device: str,
    backend: Backend | None = None,
    count_runs: Callable[[], int] = lambda: 0,
) -> Iterator[Target]:
    """Start a service and give it as a target."""
    database = str(folder / "rows.sqlite")
    settings = ServiceSettings(
        database=database,
        registry=str(folder / "models"),
        allow_run=True,
        require_tokens=True,
        runs_jobs=False,
        limits=Limits(wrong_tokens=1000),
    )
    app = create_app(settings, backend=backend)
    with TestClient(app, base_url="http://127.0.0.1") as client, make_secret() as secret:
        if not secret.is_watched:
            print("this file system does not keep when files were read: that is not judged")
        yield Target(client, add_tokens(database), secret, device, count_runs)


def try_all(folder: Path) -> list[AttackOutcome]:
    """Try what needs no device."""
    backend = FakeBackend(str(folder / "rows.sqlite"))
    device = make_devices()[0].id
    with open_target(folder, device, backend, lambda: backend.calls["sample"]) as target:
        return [target.attack(one) for one in list_attacks() if one.part != ON_DEVICES]


def try_on_device(folder: Path, device: str) -> list[AttackOutcome]:
    """Try what is aimed at compilers and devices."""
    with open_target(folder, device) as target:
        return [target.attack(one) for one in list_attacks() if one.on_devices]


def write_summary(
    found: Sequence[AttackOutcome], on_devices: dict[str, list[AttackOutcome]]
) -> str:
    """Write the table."""
    wrong = sum(bool(one.faults) for part in (found, *on_devices.values()) for one in part)
    devices = ", ".join(on_devices) or "none"
    tried = sum(map(len, on_devices.values()))
    names = len({one.attack.id for part in (found, *on_devices.values()) for one in part})
    machine = describe_machine()
    lines = [
        "# Attacks on the service",
        "",
        f"{names} attacks, {len(found)} of them without a device, {tried} trials on real devices "
        f"({devices}). Answers other than they must be: {wrong}.",
        "",
        f"Machine: {machine['processor']}, {machine['cores']} cores, {machine['date']}.",
        "",
        "`runner` may have kernels run, `reader` may only ask, `nobody` has no token. SECRET is a",
        "file of the service's user. Made by `python benchmarks/service_attacks.py`.",
        "",
        "| part | attack | caller | got | says | in order |",
        "|---|---|---|---|---|---|",
        *(_write_row(one) for one in found),
    ]
    for device, tried_there in on_devices.items():
        lines += ["", f"## On {device}", ""]
        refused = [one for one in tried_there if one.attack.part != ON_DEVICES]
        same = sum(not one.faults for one in refused)
        lines += [f"{same} of {len(refused)} attacks on source and options got the same as above."]
        lines += [
            "",
            "| part | attack | caller | got | says | in order |",
            "|---|---|---|---|---|---|",
        ]
        lines += [
            _write_row(one) for one in tried_there if one.faults or one.attack.part == ON_DEVICES
        ]
    return "\n".join(lines) + "\n"


def _write_row(one: AttackOutcome) -> str:
    attack = one.attack
    verdict = "; ".join(one.faults) or "yes"
    cells = (
        attack.part, attack.name, attack.caller, f"{one.status} {one.code}".strip(), one.message,
        verdict,
    )  # fmt: skip
    return "| " + " | ".join(map(_write_cell, cells)) + " |"


def _write_cell(text: str) -> str:
    line = " ".join(text.split())
    if len(line) > _LONGEST_MESSAGE:
        line = f"{line[:_LONGEST_MESSAGE]}..."
    safe = line.replace("\\", "\\\\").replace("|", "\\|").replace("`", "'").replace("<", "&lt;")
    return safe.encode(errors="backslashreplace").decode()


def main() -> None:
    """Try everything and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-devices", action="store_true", help="leave real devices out")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kernelcast-attacks-") as name:
        os.environ["KERNELCAST_DATA"] = name
        found = try_all(Path(name))
        on_devices: dict[str, list[AttackOutcome]] = {}
        try:
            known = [] if asked.no_devices else list_descriptions()
        except NoDeviceError:
            known = []
        for one in known:
            on_devices[one.id] = try_on_device(Path(name), one.id)
    RESULTS.mkdir(parents=True, exist_ok=True)
    summary = write_summary(found, on_devices)
    (RESULTS / "summary.md").write_text(summary, encoding="utf-8")
    print(summary)


if __name__ == "__main__":
    main()
