"""Every attack of the table gets a true refusal; nothing is shown, proven or run."""

from collections.abc import Iterator

import pytest

from kernelcast.service import Limits
from support.service_attacks.attacks import ON_DEVICES, Attack, list_attacks
from support.service_attacks.target import Target, add_tokens, make_secret
from support.service_backend import FIRST, FakeBackend, make_settings, open_client

_ATTACKS = [one for one in list_attacks() if one.part != ON_DEVICES]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Give a service that lives as long as these tests."""
    folder = tmp_path_factory.mktemp("attacks")
    with pytest.MonkeyPatch.context() as patch, make_secret() as secret:
        patch.setenv("KERNELCAST_DATA", str(folder))
        settings = make_settings(folder, require_tokens=True, limits=Limits(wrong_tokens=1000))
        database = str(settings.database)
        backend = FakeBackend(database)
        with open_client(settings, backend) as client:
            tokens = add_tokens(database)
            yield Target(client, tokens, secret, FIRST, lambda: backend.calls["sample"])


@pytest.mark.parametrize("attack", _ATTACKS, ids=lambda one: one.id)
def test_an_attack_gets_nothing(target: Target, attack: Attack) -> None:
    """The true status; no file is shown or proven, nothing runs without the right, all goes on."""
    assert target.attack(attack) == []
