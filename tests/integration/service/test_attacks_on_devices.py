"""Attacks on compilers and devices, with real ones behind the service."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

with warnings.catch_warnings():
    # It wants httpx2 by now; httpx still works, and our own client speaks it.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

from kernelcast.service import ServiceSettings, create_app
from support.service_attacks.attacks import Attack, list_attacks
from support.service_attacks.target import Target, add_tokens, make_secret

pytestmark = [pytest.mark.device, pytest.mark.timeout(600)]


@contextmanager
def _open_target(folder: str, device_id: str) -> Iterator[Target]:
    database = f"{folder}/rows.sqlite"
    settings = ServiceSettings(
        database=database,
        registry=f"{folder}/models",
        allow_run=True,
        require_tokens=True,
        runs_jobs=False,
    )
    app = create_app(settings)
    with TestClient(app, base_url="http://127.0.0.1") as client, make_secret() as secret:
        yield Target(client, add_tokens(database), secret, device_id)


def test_no_attack_reaches_a_file(
    device_id: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused before a compiler sees it, or told with lines of the submitted source alone."""
    folder = str(tmp_path_factory.mktemp("attacks"))
    monkeypatch.setenv("KERNELCAST_DATA", folder)
    with _open_target(folder, device_id) as target:
        tried = [target.attack(one) for one in list_attacks() if _is_quick(one)]
    wrong = {one.attack.id: (one.faults, one.message) for one in tried if one.faults}
    assert not wrong
    assert len(tried) >= 40


def _is_quick(attack: Attack) -> bool:
    """Leave out what starts processes for nothing: models, and a crash that others test here."""
    return attack.on_devices and attack.caller == "runner" and attack.code != "kernel_crashed"
