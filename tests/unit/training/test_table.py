from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelcast.models.linear import fit_linear
from kernelcast.records.device import DeviceKind, Trait, TraitSource
from kernelcast.records.errors import InputError
from kernelcast.records.feature_vector import FeatureSchema, make_vector
from kernelcast.records.machine import CacheFacts, MachineDescription
from kernelcast.records.observation import Observation, ObservationFlag
from kernelcast.records.problem import DeviceIdentity, KernelIdentity, digest_text
from kernelcast.training.table import (
    load_training_table,
    read_observations,
    tabulate,
)
from kernelcast.training_data.parquet import export_parquet
from kernelcast.training_data.store import open_store
from support.observations import make_observation

SCHEMA = FeatureSchema(
    names=("static.buffers_count", "sampled.total_s", "sampled.linear_s"), version=1
)


def observe(
    name: str = "triad", *, device: str = "one", rates_s: Sequence[float] = (1e-4, 2e-4),
    schema: FeatureSchema = SCHEMA,
) -> Observation:  # fmt: skip
    """Make an observation with a sample set of a multiple, then a usual one per rate."""
    one = make_observation(0, schema=schema)
    (samples,) = one.samples
    sets = (
        replace(
            samples, multiple=0 if place else 1, window_set=place, launch_overhead_s=0.0,
            launches=tuple(replace(each, duration_s=rate_s * each.box.work_group_count)
                           for each in samples.launches),
        )
        for place, rate_s in enumerate((5e-4, *rates_s))
    )  # fmt: skip
    kernel = KernelIdentity(name=name, digest=digest_text(name), application="streams")
    launch = replace(one.launch, kernel=kernel, device=DeviceIdentity(id=device))
    features = make_vector(dict.fromkeys(schema.names, 1.0), schema)
    return replace(one, launch=launch, samples=tuple(sets), features=features, versions={})


def test_columns_follow_from_the_first_samples() -> None:
    """Linear time, cost and sampled features are those of the first samples as estimates take."""
    one, rate_s = observe(), 1e-4
    table = tabulate([one])
    assert table.linear_s[0] == pytest.approx(fit_linear(one.sample_run(1)).seconds)
    assert table.linear_s[0] == pytest.approx(1000 * rate_s, rel=0.01)
    assert table.sampling_s[0] == pytest.approx(10 * rate_s)
    assert table.column("sampled.total_s")[0] == pytest.approx(10 * rate_s)
    assert table.column("sampled.linear_s")[0] == table.linear_s[0]
    assert table.column("static.buffers_count")[0] == 1.0
    assert table.seconds[0] == one.seconds
    assert table.kernels[0] == "streams/triad"


def test_rows_without_what_was_asked_for_are_left_out() -> None:
    """Rows without features or samples are no rows where others have them; what was is counted."""
    others = [
        observe("short", rates_s=()),
        replace(observe("bare"), features=None),
        replace(observe("unsampled"), samples=()),
    ]
    left_out: Counter[str] = Counter()
    table = tabulate([observe(), *others], left_out=left_out)
    assert table.kernels.tolist() == ["streams/triad"]
    assert left_out == {"no features": 1, "no samples as an estimate takes them": 2}
    unsampled = tabulate(others)
    assert {*unsampled.kernels} == {"streams/short", "streams/unsampled"}
    assert np.isnan(unsampled.linear_s).all()
    with pytest.raises(InputError, match=r"left out: 1 no features\); `kernelcast collect`"):
        tabulate(others[1:2])


def test_newer_analytic_features_complete_samples_and_older_ones_are_not_mixed() -> None:
    """One row of two sources has the samples of one, the features of the newer CPU model."""
    names = ("analytic.estimate_s", *SCHEMA.names)
    schema = FeatureSchema(names=names, version=1)
    sampled = replace(observe(schema=schema), versions={"sampler": "2", "cpu_model": "3"})
    newer = replace(
        sampled, samples=(), versions={"cpu_model": "4"},
        features=make_vector({"analytic.estimate_s": 0.25}, schema),
    )  # fmt: skip
    other = replace(observe("copy", schema=schema), versions=sampled.versions)
    left_out: Counter[str] = Counter()
    table = tabulate([newer, sampled, other], left_out=left_out)
    by_kernel = dict(zip(table.kernels, table.column("analytic.estimate_s"), strict=True))
    assert by_kernel["streams/triad"] == 0.25
    assert np.isnan(by_kernel["streams/copy"])
    assert [*table.samplers] == [2.0, 2.0]
    assert left_out["analytic features of CPU models before revision 4, of these rows"] == 1


def test_peaks_come_with_the_device() -> None:
    """Puts a device's peaks beside each of its rows, NaN where they are not known; the same launch
    is the same problem on every device."""
    size = Trait(value=1_000_000, source=TraitSource.MEASURED)
    machine = MachineDescription(
        id="one", name="One", kind=DeviceKind.CPU, caches=(CacheFacts(name="L1", size_bytes=size),)
    )
    rows = [observe(device="one"), observe(device="two"), observe("copy", device="two")]
    table = tabulate(rows, find_machine={"one": machine}.get)
    places = zip(table.kernels, table.devices, table.problems, strict=True)
    problems = {(kernel, device): problem for kernel, device, problem in places}
    here, there = (problems["streams/triad", name] for name in ("one", "two"))
    assert here == there != problems["streams/copy", "two"]
    by_device = dict(zip(table.devices.tolist(), table.cache_bytes.tolist(), strict=True))
    assert by_device["one"] == 1e6
    assert np.isnan(by_device["two"])


def test_schemas_of_one_version_are_joined_and_others_refused() -> None:
    """Takes every feature that some rows have; another version means something else."""
    fewer = FeatureSchema(names=SCHEMA.names[1:], version=1)
    rows = [observe("a"), *(observe(key, schema=fewer) for key in "bc")]
    table = tabulate(rows)
    assert table.schema == SCHEMA
    assert np.isnan(table.column("static.buffers_count")).sum() == 2
    newer = FeatureSchema(names=SCHEMA.names, version=2)
    with pytest.raises(InputError, match="versions 1, 2"):
        tabulate([*rows, observe("d", schema=newer)])


def test_rows_of_older_samplers_are_left_out_and_told(tmp_path: Path) -> None:
    """Learns from one way of sampling, each device's newest, and says how many rows that costs; a
    revision that is no number is not taken for the first."""
    path = tmp_path / "rows.sqlite"
    newest = {"sampler": "2"}
    rows = [
        observe(),
        replace(observe("copy"), versions=newest),
        replace(observe("scale"), versions=newest),
        observe("add", device="two"),
    ]
    with open_store(path) as store:
        store.add_many(rows)
    told: list[str] = []
    table = load_training_table([path], tell=told.append)
    assert {*table.kernels.tolist()} == {"streams/copy", "streams/scale", "streams/add"}
    assert dict(zip(table.devices.tolist(), table.samplers.tolist(), strict=True)) == {
        "one": 2.0, "two": 1.0,
    }  # fmt: skip
    (only,) = told
    assert only.startswith("1 observations are left out: of one, ")
    assert "revision 2" in only
    with pytest.raises(InputError, match="revision 'new'"):
        tabulate([replace(observe(), versions={"sampler": "new"})])


def test_reads_stores_and_parquet_alike(tmp_path: Path) -> None:
    """Rows without flags, of the devices asked for, from stores, files and folders; where all are
    flagged that is told."""
    flagged = replace(make_observation(0), flags=frozenset({ObservationFlag.CONTAMINATED}))
    expected = {make_observation(number).key for number in range(1, 6)}
    folder = tmp_path / "rows"
    folder.mkdir()
    with open_store(tmp_path / "a.sqlite") as store:
        store.add_many([flagged, *map(make_observation, range(1, 6))])
        export_parquet(store, folder / "rows.parquet")
    for source in (tmp_path / "a.sqlite", folder, folder / "rows.parquet"):
        assert {one.key for one in read_observations([source])} == expected
        (only,) = {
            one.launch.device.id for one in read_observations([source], devices=["device-1"])
        }
        assert only == "device-1"
    assert len(list(read_observations([tmp_path / "a.sqlite", folder]))) == 10
    with open_store(tmp_path / "b.sqlite") as store:
        store.add(flagged)
    with pytest.raises(InputError, match="1 flagged as contaminated"):
        load_training_table([tmp_path / "b.sqlite"])


def test_sources_that_are_not_there_are_errors(tmp_path: Path) -> None:
    """A missing file and a folder without Parquet files."""
    folder, cut = tmp_path / "folder", tmp_path / "cut.parquet"
    folder.mkdir()
    cut.write_bytes(b"PAR1")
    for source, told in (
        (tmp_path / "none.sqlite", "there is no store"), (folder, "no Parquet files"),
        (cut, r"cut\.parquet: is no Parquet file"), (tmp_path, r"cut\.parquet: is no Parquet file"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=told):
            list(read_observations([source]))
