from dataclasses import replace
from pathlib import Path

import pytest

from kernelcast.predictor.answering import facts_store as module
from kernelcast.predictor.answering import kept_files
from kernelcast.predictor.answering.facts_store import FactsStore
from kernelcast.predictor.answering.tasks import LaunchFacts
from kernelcast.predictor.predictor import Predictor
from kernelcast.predictor.predictor_options import PredictorOptions
from kernelcast.records.arguments import Access
from support.fake_executor import FakeExecutor, make_analytic

KEY = ("digest", "device", "driver", "sizes", (("file", 1, 2),), 3, 0)
FACTS = LaunchFacts(
    values={"static.buffers_count": 3.0, "counters.flops_per_work_item": 0.1 + 0.2},
    issued_per_work_item=17.25,
    analytic=replace(make_analytic(0.4), quantities={"waves_count": 2.0}, notes=("a", "b")),
    accesses=(Access.READ, None),
    notes=("something was not had",),
    cost_s=1.5,
)


def test_facts_come_back_to_the_last_bit(tmp_path: Path) -> None:
    """What one process keeps, another finds, under the same key only."""
    FactsStore(tmp_path).keep(KEY, FACTS)
    store = FactsStore(tmp_path)
    assert store.find(KEY) == FACTS
    assert store.find((*KEY[:-1], 1)) is None
    bare = LaunchFacts(values={}, issued_per_work_item=None, analytic=None)
    store.keep(("another",), bare)
    assert store.find(("another",)) == bare


def test_other_code_makes_other_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts of a version whose features were made otherwise are not found."""
    store = FactsStore(tmp_path)
    store.keep(KEY, FACTS)
    monkeypatch.setattr(kept_files, "_stamp_code", lambda: "changed")
    assert store.find(KEY) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "other"}', '{"format": 1}'])
def test_damaged_files_are_as_good_as_none(tmp_path: Path, text: str) -> None:
    """A file that cannot be read costs the counting, not the estimate."""
    store = FactsStore(tmp_path)
    store.keep(KEY, FACTS)
    (path,) = tmp_path.rglob("*.json")
    path.write_text(text)
    assert store.find(KEY) is None
    store.keep(KEY, FACTS)
    assert store.find(KEY) == FACTS


def test_a_folder_that_cannot_be_written_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a place to keep facts, nothing is kept, nothing fails, and it is said once."""
    (tmp_path / "file").touch()
    store = FactsStore(tmp_path / "file" / "facts")
    store.keep(KEY, FACTS)
    store.keep(KEY, FACTS)
    assert [one.getMessage().count("are not kept") for one in caplog.records] == [1]
    assert store.find(KEY) is None


def test_the_oldest_facts_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder holds so many files and no more."""
    monkeypatch.setattr(module, "_MOST_FILES", 1)
    store = FactsStore(tmp_path)
    for number in range(600):
        store.keep((number,), LaunchFacts(values={}, issued_per_work_item=None, analytic=None))
    assert len([*tmp_path.rglob("*.json")]) <= 256
    assert store.find((599,)) is not None


def test_only_devices_of_this_machine_have_facts_kept(tmp_path: Path) -> None:
    """Where something else samples, nothing is read from or written to the data folder."""
    options = PredictorOptions(executor=FakeExecutor(), facts_store=FactsStore(tmp_path))
    assert options.choose_facts_store() is None
    options = PredictorOptions(facts_store=FactsStore(tmp_path))
    assert options.choose_facts_store() is options.facts_store
    with Predictor([], options=options) as predictor:
        assert predictor is not None
