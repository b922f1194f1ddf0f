"""What every model of the catalogue does, on launches with planted structure."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelcast.models.time_models import FittedModel, TimeModel, make_model
from kernelcast.models.validation.report import StoredModel, read_model, validate, write_model
from kernelcast.models.versioned_files import ModelFileError, VersionedFiles
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.training_table import TrainingTable
from support.synthetic_rows import SCHEMA, make_rows

# One of each kind: the ablations differ from the hybrid only in their feature groups.
NAMES = (
    "two_point", "linear", "pooled_rate", "analytic", "history", "ridge", "gradient_boosting",
    "svr", "hybrid_without_counters", "hybrid", "hybrid_pooled",
)  # fmt: skip
TABLE = make_rows(kernels=12, sizes=4, seed=1)
UNSEEN = make_rows(kernels=5, sizes=3, seed=2)


def name_it(model: FittedModel, **more: Any) -> StoredModel:  # noqa: ANN401 - fields
    """Name a model as a registry does."""
    return StoredModel(name="ridge/d", model=model, **more)


@pytest.mark.parametrize("model", [make_model(name) for name in NAMES], ids=NAMES, scope="class")
class TestModels:
    """What every kind of model must do."""

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls, model: TimeModel) -> FittedModel:
        """Give the model, trained."""
        return model.fit(TABLE)

    def test_predicts_unseen_kernels_without_their_times(self, fitted: FittedModel) -> None:
        """Gives one finite positive time per row, each the same alone and without a measurement."""
        seconds = fitted.forecast(UNSEEN)[0]
        assert seconds.shape == (len(UNSEEN),)
        assert (np.isfinite(seconds) & (seconds > 0)).all()
        blind = UNSEEN.assign(seconds=np.full(len(UNSEEN), np.nan))
        np.testing.assert_array_equal(fitted.forecast(blind)[0], seconds)
        alone = [fitted.forecast(UNSEEN.take(np.array([row])))[0][0] for row in range(len(UNSEEN))]
        np.testing.assert_allclose(alone, seconds, rtol=1e-9)
        assert fitted.forecast(UNSEEN.take(np.array([], dtype=np.intp)))[0].shape == (0,)

    def test_intervals_hold_the_prediction_and_widen(self, fitted: FittedModel) -> None:
        """The higher the coverage, the wider the interval; a coverage lies between 0 and 1."""
        found = [fitted.forecast(UNSEEN, share) for share in (0.5, 0.8, 0.9, 0.99)]
        for seconds, low, high, _ in found:
            np.testing.assert_allclose(seconds, fitted.forecast(UNSEEN)[0], rtol=1e-12)
            assert (low <= seconds).all()
            assert (seconds <= high).all()
        widths = [high / low for _, low, high, _ in found]
        assert all((low <= high * (1 + 1e-12)).all() for low, high in pairwise(widths))
        for coverage in (0.0, 1.0, 90.0):
            with pytest.raises(InputError, match="coverage"):
                fitted.forecast(UNSEEN, coverage)

    def test_order_of_rows_does_not_matter(self, model: TimeModel, fitted: FittedModel) -> None:
        """Training on shuffled rows gives the same predictions."""
        shuffled = TABLE.take(np.random.default_rng(5).permutation(len(TABLE)))
        found, expected = (one.forecast(UNSEEN)[0] for one in (model.fit(shuffled), fitted))
        np.testing.assert_array_equal(found, expected)

    def test_refuses_what_does_not_fit(self, model: TimeModel, fitted: FittedModel) -> None:
        """Another schema is refused, and so is a single group to learn from."""
        other = FeatureSchema(names=UNSEEN.schema.names, version=UNSEEN.schema.version + 1)
        with pytest.raises(InputError, match=rf"(?s){UNSEEN.schema.id}.*{other.id}"):
            fitted.forecast(TrainingTable(other, UNSEEN.frame))
        with pytest.raises(InputError, match="two groups"):
            model.fit(TABLE.take(TABLE.kernels == TABLE.kernels[0]))

    def test_survives_a_file(self, fitted: FittedModel) -> None:
        """A stored model predicts the same to the last bit."""
        stored = read_model(write_model(name_it(fitted))).model
        np.testing.assert_array_equal(stored.forecast(UNSEEN), fitted.forecast(UNSEEN))
        assert stored.describe() == fitted.describe()


def test_references_are_columns_and_history_remembers() -> None:
    """Each rule takes its column; a launch measured before comes back as its median."""
    rate = TABLE.column("sampled.total_s") / TABLE.column("sampled.work_groups_count")
    np.testing.assert_allclose(make_model("pooled_rate").refer(TABLE), rate * TABLE.work_groups)
    np.testing.assert_array_equal(make_model("two_point").refer(TABLE), TABLE.linear_s)
    assert np.isnan(make_model("mwp_cwp").refer(TABLE)).all()
    fitted = make_model("history").fit(TABLE)
    np.testing.assert_array_equal(fitted.forecast(TABLE)[0], TABLE.seconds)
    np.testing.assert_array_equal(fitted.forecast(UNSEEN)[0], UNSEEN.linear_s)
    (_, a, b, _), (_, low, high, _) = fitted.forecast(TABLE), fitted.forecast(UNSEEN)
    assert np.median(b / a) < np.median(high / low)
    without = TABLE.assign(linear_s=np.full(len(TABLE), np.nan))
    *times, is_known = make_model("linear").fit(TABLE).forecast(without)
    assert np.isnan(times).all()
    assert not is_known.any()


@pytest.fixture(scope="module")
def ridge() -> FittedModel:
    """Give a small model."""
    return make_model("ridge").fit(TABLE)


def test_files_hold_what_is_known_of_a_model(ridge: FittedModel) -> None:
    """Report, schema, versions and samplers come back; the same model makes the same bytes."""
    report = validate(TABLE, [make_model("linear")], TABLE.kernels)
    stored = read_model(write_model(name_it(ridge, report=report, samplers=(5,))))
    assert (stored.report, stored.model.schema, stored.samplers) == (report, SCHEMA, (5,))
    assert "scikit-learn" in stored.versions
    assert write_model(name_it(make_model("ridge").fit(TABLE))) == write_model(name_it(ridge))


@pytest.mark.parametrize("change", [
    {"model": "oracle"}, {"correction": {"names": ["a"]}}, {"calibration": None},
    {"launches": {"p@d": [-1.0, 0.1]}}, {"schema": {"names": [], "version": "x"}},
], ids=str)  # fmt: skip
def test_damaged_and_foreign_files_are_refused(
    ridge: FittedModel, change: dict[str, object]
) -> None:
    """Whatever is wrong, the message names the file and says what to do."""
    held = json.loads(write_model(name_it(ridge)))
    content = json.dumps({**held, "model": {**held["model"], **change}}).encode()
    foreign = json.dumps({**held, "format": "kernelcast model 1"}).encode()
    others = (content[:-10], b"", b"\x80\x04cos\nsystem\n", b"[" * 100_000, b"null")
    for wrong in (content, foreign, *others):
        with pytest.raises(ModelFileError, match=r"my file: cannot be read.*train the model anew"):
            read_model(wrong, "my file")


def test_files_of_other_schemas_and_samplers_are_refused(ridge: FittedModel) -> None:
    """A model is not given features that it does not know, nor samples of another sampler."""
    stored = name_it(ridge, samplers=(4,))
    narrow = FeatureSchema(names=SCHEMA.names[1:], version=1)
    stored.require(FeatureSchema(names=(*SCHEMA.names, "static.more_count"), version=1), 4)
    with pytest.raises(ModelFileError, match=rf"{SCHEMA.id}, not {narrow.id}"):
        stored.require(narrow, 4)
    with pytest.raises(ModelFileError, match="revision 4 of the sampler, not 5"):
        stored.require(None, 5)


@pytest.mark.parametrize("scheme", ["", "memory://"])
def test_registries_keep_versions(tmp_path: Path, scheme: str) -> None:
    """The latest is used unless one is pinned; rolling back keeps the files, and what was changed
    of them is not loaded."""
    registry = VersionedFiles(url=f"{scheme}{tmp_path}/models")
    first, second = (registry.publish("ridge/d", f"text {n}") for n in (1, 2))
    assert registry.load("ridge/d")[0] == b"text 2"
    assert registry.find_model("ridge/d").choose("0002") == second
    registry.pin("ridge/d", first)
    assert registry.load("ridge/d")[0] == b"text 1"
    registry.pin("ridge/d", None)
    assert registry.roll_back("ridge/d").used == first
    assert [one.versions for one in registry.list_models()] == [(first, second)]
    for call, told in (
        (lambda: registry.roll_back("ridge/d"), "no version before"),
        (lambda: registry.pin("ridge/d", "0009"), f"no version begins with '0009'.*{first}"),
        (lambda: registry.pin("ridge/d", "000"), "several versions begin with '000'"),
        (lambda: registry.load("ridge/other"), "no model ridge/other; there are: ridge/d"),
        (lambda: registry.load("../x"), "is no name"),
    ):
        with pytest.raises(ModelFileError, match=told):
            call()
    if not scheme:
        folder = tmp_path / "models/ridge/d"
        path = folder / f"{first}.json"
        path.write_bytes(path.read_bytes().replace(b"text", b"other"))
        with pytest.raises(ModelFileError, match="not the file that was published"):
            registry.load("ridge/d")
        (folder / "versions.json").write_text('{"versions": ["x"]}')
        with pytest.raises(ModelFileError, match="list of versions is damaged"):
            registry.load("ridge/d")
