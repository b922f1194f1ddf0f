from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.models.persistence import StoredModel
from kernelcast.models.time_models import make_model
from kernelcast.models.versioned_files import ModelFileError
from kernelcast.records.errors import InputError
from kernelcast.training.registry import MODELS_VARIABLE, choose_registry, name_model, open_registry
from support.synthetic_rows import make_rows

FITTED = make_model("linear").fit(make_rows(kernels=4, sizes=2))


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


def test_finds_versions_by_their_beginning(tmp_path: Path) -> None:
    """A number suffices; what is not there is named with what is."""
    registry = open_registry(str(tmp_path))
    first, second = (registry.publish(StoredModel(name="linear/x", model=FITTED)) for _ in range(2))
    model = registry.find_model("linear/x")
    assert model.choose("0002") == second
    assert model.choose(first) == first
    with pytest.raises(InputError, match="several versions begin with '000'"):
        model.choose("000")
    with pytest.raises(InputError, match=f"no version begins with '0003'.*{first}"):
        model.choose("0003")
    with pytest.raises(InputError, match=r"no model linear/y; there are: linear/x"):
        registry.find_model("linear/y")
    with pytest.raises(ModelFileError, match="is no name"):
        registry.find_model("../secret")


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
