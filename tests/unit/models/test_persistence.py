import io
import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import skops.io

from kernelcast.models.catalogue import make_model
from kernelcast.models.correction import CorrectionModel
from kernelcast.models.learned.svr import SvrLearner
from kernelcast.models.persistence import (
    ModelFileError,
    ModelRegistry,
    load_model,
    save_model,
)
from kernelcast.models.persistence.format import read_model, write_model
from kernelcast.models.persistence.unpacking import unpack
from kernelcast.models.protocol import FittedModel
from kernelcast.models.validation import validate
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema
from support.synthetic_rows import SCHEMA, make_rows

TABLE = make_rows(kernels=6, sizes=3)


@pytest.fixture(scope="module")
def fitted() -> FittedModel:
    """Give the hybrid, trained."""
    return make_model("hybrid").fit(TABLE)


@pytest.fixture(scope="module")
def content(fitted: FittedModel) -> bytes:
    """Give its file."""
    return write_model(fitted, SCHEMA)


class Bomb:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (open, (str(self.path), "w"))


def repack(content: bytes, change: dict[str, bytes]) -> bytes:
    """Replace or add members of an archive."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(target, "w") as new:
        members = {name: old.read(name) for name in old.namelist()} | change
        for name, data in members.items():
            new.writestr(name, data)
    return target.getvalue()


def test_holds_schema_versions_and_report(fitted: FittedModel, tmp_path: Path) -> None:
    """What is known of a model comes back with it."""
    report = validate(TABLE, [make_model("linear")], TABLE.kernels)
    url = str(tmp_path / "folder" / "model.skops")
    save_model(fitted, url, SCHEMA, report)
    stored = load_model(url, SCHEMA)
    assert stored.schema == SCHEMA
    assert stored.report == report
    assert {"numpy", "scikit-learn", "kernelcast"} <= {*stored.versions}
    assert stored.model.describe()["data_digest"] == TABLE.digest


def test_unpacks_what_skops_does(content: bytes) -> None:
    """Our reader of plain files gives what skops itself gives, arrays to the last bit."""
    _compare(unpack(content), skops.io.loads(content))
    plain = {"a": [1, 2.5, "x", None, True], "b": {"c": np.arange(3), "d": {}}, "e": []}
    _compare(unpack(skops.io.dumps(plain)), plain)


def _compare(ours: object, theirs: object) -> None:
    assert type(ours) is type(theirs)
    if isinstance(ours, dict) and isinstance(theirs, dict):
        assert [*ours] == [*theirs]
        for one, other in zip(ours.values(), theirs.values(), strict=True):
            _compare(one, other)
    elif isinstance(ours, list) and isinstance(theirs, list):
        for one, other in zip(ours, theirs, strict=True):
            _compare(one, other)
    elif isinstance(ours, np.ndarray):
        np.testing.assert_array_equal(ours, theirs, strict=True)
    else:
        assert ours == theirs


def test_a_later_format_is_left_to_skops(content: bytes) -> None:
    """A file that says another version of the format is read by skops, with the same result."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        tree = json.loads(archive.read("schema.json"))
    tree["protocol"] = 1
    other = repack(content, {"schema.json": json.dumps(tree).encode()})
    expected = read_model(content, "here").model.predict(TABLE)
    np.testing.assert_array_equal(read_model(other, "here").model.predict(TABLE), expected)


def test_reading_a_model_imports_nothing_that_trains(content: bytes, tmp_path: Path) -> None:
    """A stored model answers without scikit-learn, skops, SciPy, numba, pandas or fsspec."""
    (tmp_path / "m.skops").write_bytes(content)
    code = (
        "import sys\n"
        "from kernelcast.models.persistence import load_model\n"
        "from kernelcast.models.persistence.registry import ModelRegistry\n"
        "from kernelcast.predictor.answering import forecasting\n"
        "load_model(sys.argv[1])\n"
        "ModelRegistry(url=sys.argv[2]).find_versions('none')\n"
        "heavy = {'sklearn', 'skops', 'scipy', 'numba', 'pandas', 'fsspec', 'joblib'}\n"
        "print(*sorted(heavy & {*sys.modules}))\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "m.skops"), str(tmp_path)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert found.stdout.split() == []


def test_refuses_another_schema_and_names_both(content: bytes) -> None:
    """A model that takes other features than those at hand is not loaded."""
    other = FeatureSchema(names=SCHEMA.names[1:], version=1)
    with pytest.raises(ModelFileError, match=rf"{SCHEMA.id}.*{other.id}"):
        read_model(content, "here", other)


def test_features_added_later_do_no_harm(content: bytes) -> None:
    """A model loads where there are more features than it takes, and keeps to its own."""
    wider = FeatureSchema(names=("static.new_count", *SCHEMA.names, "analytic.new_s"), version=1)
    assert read_model(content, "here", wider).schema == SCHEMA
    newer = FeatureSchema(names=wider.names, version=2)
    with pytest.raises(ModelFileError, match=newer.id):
        read_model(content, "here", newer)


@pytest.mark.parametrize("samplers", [(1,), (1, 2)])
def test_refuses_samples_of_another_sampler_and_names_both(
    fitted: FittedModel, samplers: tuple[int, ...]
) -> None:
    """A model that corrects what one sampler gets wrong does not correct another."""
    content = write_model(fitted, SCHEMA, samplers=samplers)
    assert read_model(content, "here").samplers == samplers
    with pytest.raises(ModelFileError, match=r"revision 1.* of the sampler, not 2"):
        read_model(content, "here", sampler=2)


def test_takes_samples_of_its_own_sampler(fitted: FittedModel) -> None:
    """What it has learned from serves; so does a model that does not know."""
    for samplers in ((2,), ()):
        content = write_model(fitted, SCHEMA, samplers=samplers)
        assert read_model(content, "here", SCHEMA, sampler=2).samplers == samplers


def test_files_that_do_not_tell_are_of_the_first_sampler(
    fitted: FittedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files from before samplers were told apart learned from what there was."""
    packed = write_model(fitted, SCHEMA)
    held = {name: one for name, one in unpack(packed).items() if name != "samplers"}
    monkeypatch.setattr("kernelcast.models.persistence.format.unpack", lambda _: held)
    assert read_model(packed, "here").samplers == (1,)


def test_runs_nothing_of_a_pickle(tmp_path: Path) -> None:
    """A pickle in the place of a model is refused, and does not run."""
    mark = tmp_path / "mark"
    (tmp_path / "model.skops").write_bytes(pickle.dumps(Bomb(mark)))
    with pytest.raises(ModelFileError, match="no model file"):
        load_model(str(tmp_path / "model.skops"))
    assert not mark.exists()
    with pickle.loads(pickle.dumps(Bomb(mark))):  # the bomb itself does work
        assert mark.exists()


def test_runs_nothing_of_a_pickled_array(content: bytes, tmp_path: Path) -> None:
    """An array that hides a pickle is refused, and does not run."""
    mark = tmp_path / "mark"
    data = io.BytesIO()
    np.save(data, np.array([Bomb(mark)], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        member = next(name for name in archive.namelist() if name.endswith(".npy"))
    with pytest.raises(ModelFileError, match="damaged"):
        read_model(repack(content, {member: data.getvalue()}), "here")
    assert not mark.exists()


@pytest.mark.parametrize(
    "node",
    [
        {"__class__": "system", "__module__": "posix", "__loader__": "FunctionNode",
         "content": "x"},
        {"__class__": "Popen", "__module__": "subprocess", "__loader__": "ObjectNode",
         "content": {}},
        {"__class__": "dict", "__module__": "builtins", "__loader__": "ReduceNode",
         "content": {}},
        {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode",
         "type": "json", "content": []},
        {"__class__": "SVR", "__module__": "sklearn.svm._classes", "__loader__": "ObjectNode",
         "content": {}},
    ],
)  # fmt: skip
def test_refuses_types_that_no_model_has(
    content: bytes, node: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that names any class or function is refused before anything is built from it."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(os, "system", fail)
    monkeypatch.setattr(subprocess, "Popen", fail)
    monkeypatch.setattr(skops.io, "loads", fail)
    monkeypatch.setattr("kernelcast.models.persistence.format.unpack", fail)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        tree = json.loads(archive.read("schema.json"))
    tree["content"]["state"]["content"]["facts"] = node
    with pytest.raises(ModelFileError, match="was not opened"):
        read_model(repack(content, {"schema.json": json.dumps(tree).encode()}), "here")


def test_refuses_a_file_of_an_estimator() -> None:
    """Another program's skops file is no model of ours."""
    with pytest.raises(ModelFileError, match="not opened"):
        read_model(skops.io.dumps(np.random.default_rng(0)), "here")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_refuses_truncated_files(content: bytes, share: float) -> None:
    """A file that was cut off is refused, wherever."""
    with pytest.raises(ModelFileError, match="here"):
        read_model(content[: int(share * len(content))], "here")


def test_refuses_flipped_bytes(content: bytes) -> None:
    """A changed byte gives an error or the same model, never another model."""
    expected = read_model(content, "here").model.predict(TABLE)
    for place in np.random.default_rng(0).integers(0, len(content), 60):
        damaged = bytearray(content)
        damaged[place] ^= 0x55
        try:
            found = read_model(bytes(damaged), "here").model.predict(TABLE)
        except ModelFileError:
            continue
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("points",), np.zeros((2, 1))),
        (("learned", "weights"), np.zeros(1)),
        (("preparation", "indicators"), np.array([10**6])),
        (("gate",), [1.0]),
        (("calibration",), {}),
    ],
)
def test_refuses_numbers_that_do_not_fit(
    fitted: FittedModel, place: tuple[str, ...], value: object
) -> None:
    """Arrays of other shapes are refused at once, not when a launch is predicted."""
    held = skops.io.loads(write_model(fitted, SCHEMA))
    inside = held["state"]
    for name in place[:-1]:
        inside = inside[name]
    inside[place[-1]] = value
    with pytest.raises(ModelFileError, match=r"do not fit together|damaged"):
        read_model(skops.io.dumps(held), "here")


def test_refuses_walks_without_an_end() -> None:
    """Trees whose nodes point backwards would be walked for ever: they are refused."""
    held = skops.io.loads(write_model(make_model("random_forest").fit(TABLE), SCHEMA))
    held["state"]["learned"]["left"][:] = 0
    with pytest.raises(ModelFileError, match="nodes of the trees"):
        read_model(skops.io.dumps(held), "here")


def test_refuses_another_format_and_huge_files(content: bytes) -> None:
    """The format is in the file, and what would fill the memory is not unpacked."""
    held = skops.io.loads(content)
    with pytest.raises(ModelFileError, match="format"):
        read_model(skops.io.dumps({**held, "format": "kernelcast model 0"}), "here")
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", b" " * (2**24 + 1))
    with pytest.raises(ModelFileError, match="smaller"):
        read_model(target.getvalue(), "here")


def test_stores_only_models_of_the_catalogue() -> None:
    """A file names its model: one that the name does not give cannot be stored."""
    own = CorrectionModel(name="hybrid", learner=SvrLearner(inner_folds=3))
    with pytest.raises(InputError, match="catalogue"):
        write_model(own.fit(TABLE), SCHEMA)


def test_missing_file_is_named(tmp_path: Path) -> None:
    """A path without a file is refused by name."""
    with pytest.raises(ModelFileError, match="nowhere"):
        load_model(str(tmp_path / "nowhere.skops"))


class TestRegistry:
    """Versions under a folder or URL."""

    @pytest.fixture(params=["folder", "memory"])
    def registry(self, request: pytest.FixtureRequest, tmp_path: Path) -> ModelRegistry:
        """Give a registry in a folder, and one behind a URL."""
        folder = str(tmp_path / "registry")
        return ModelRegistry(url=folder if request.param == "folder" else f"memory:/{folder}")

    def test_latest_pin_and_rollback(self, registry: ModelRegistry) -> None:
        """The latest is used unless one is pinned, and the way back is open."""
        models = [make_model("linear").fit(make_rows(kernels=4, seed=seed)) for seed in range(3)]
        versions = [registry.publish("a/linear", one, SCHEMA) for one in models]
        digests = [one.describe()["data_digest"] for one in models]

        def current() -> object:
            return registry.load("a/linear", schema=SCHEMA).model.describe()["data_digest"]

        assert current() == digests[2]
        assert registry.roll_back("a/linear") == versions[1]
        assert current() == digests[1]
        registry.pin("a/linear", versions[0])
        assert current() == digests[0]
        fourth = registry.publish("a/linear", models[0], SCHEMA)
        assert current() == digests[0]
        registry.pin("a/linear", None)
        assert registry.find_versions("a/linear").latest == fourth
        assert len(registry.find_versions("a/linear").versions) == 4
        assert registry.load("a/linear", versions[2]).model.describe()["data_digest"] == digests[2]

    def test_refuses_what_is_not_there(self, registry: ModelRegistry, fitted: FittedModel) -> None:
        """Unknown models and versions, names that leave the folder, and a way back to nowhere."""
        with pytest.raises(ModelFileError, match="none"):
            registry.load("hybrid")
        version = registry.publish("hybrid", fitted, SCHEMA)
        with pytest.raises(ModelFileError, match=version):
            registry.pin("hybrid", "0009-0123456789ab")
        with pytest.raises(ModelFileError, match="before"):
            registry.roll_back("hybrid")
        for name in ("../hybrid", "/etc", "", "a//b"):
            with pytest.raises(ModelFileError, match="no name"):
                registry.load(name)

    def test_refuses_a_file_that_was_exchanged(
        self, tmp_path: Path, fitted: FittedModel, content: bytes
    ) -> None:
        """A version is the file that was published, even if another one is sound."""
        registry = ModelRegistry(url=str(tmp_path))
        version = registry.publish("hybrid", fitted, SCHEMA)
        (tmp_path / "hybrid" / f"{version}.skops").write_bytes(content + b"\0")
        with pytest.raises(ModelFileError, match="not the file"):
            registry.load("hybrid")

    def test_refuses_a_damaged_list(self, tmp_path: Path, fitted: FittedModel) -> None:
        """A list that names what is not there is refused."""
        registry = ModelRegistry(url=str(tmp_path))
        registry.publish("hybrid", fitted, SCHEMA)
        for text in ("", "[]", '{"versions": ["../x"], "latest": "../x", "pinned": null}'):
            (tmp_path / "hybrid" / "versions.json").write_text(text)
            with pytest.raises(ModelFileError):
                registry.load("hybrid")
