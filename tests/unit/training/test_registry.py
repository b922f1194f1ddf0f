from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.errors import InputError
from kernelcast.training.registry import MODELS_VARIABLE, choose_registry, name_model, open_registry


@given(st.lists(st.text(max_size=30), min_size=2, max_size=5, unique=True))
def test_every_device_has_a_name_of_its_own(devices: list[str]) -> None:
    """Whatever ids hold, names are fit for a registry and differ."""
    names = [name_model("hybrid", one) for one in devices]
    assert len({*names}) == len(devices)
    registry = open_registry("/nowhere")
    for one in names:
        assert registry.find_versions(one).versions == ()


def test_a_url_of_no_kind_is_an_error() -> None:
    """Says which place and what to do."""
    with pytest.raises(InputError, match="bogus://models: cannot be read"):
        open_registry("bogus://models").list_models()


def test_the_place_is_chosen_like_the_store(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is named, else the variable, else the data folder."""
    monkeypatch.setenv("KERNELCAST_DATA", str(tmp_path))
    monkeypatch.delenv(MODELS_VARIABLE, raising=False)
    assert choose_registry() == str(tmp_path / "models")
    monkeypatch.setenv(MODELS_VARIABLE, "memory://elsewhere")
    assert choose_registry() == "memory://elsewhere"
    assert choose_registry("here") == "here"
