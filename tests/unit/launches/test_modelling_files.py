import json
import re
from pathlib import Path

import pytest

from kernelcast.analytic.gpu.hit_rates import HitRate, find_hit_rates
from kernelcast.launches.machines import find_machine
from kernelcast.launches.modelling.gpu_estimates import (
    compare_with_measured,
    configure,
    derive_points,
    fit_all,
    read_hit_rates_file,
    read_measurements,
    write_hit_rates,
)
from kernelcast.launches.modelling.sources import read_launch_source
from kernelcast.records.errors import InputError, ProblemFileError

ROOT = Path(__file__).resolve().parents[3]
GOOD = """\
arrays: {a: "float32:4x4", n: "int32"}
global_size: [4, 4]
loads: ["a[x][y]"]
"""


def test_reads_every_key(tmp_path: Path) -> None:
    """Fills parameters in, in texts and in numbers."""
    path = tmp_path / "all.yaml"
    path.write_text("""\
kernel: mine
parameters: {N: 8, M: "{N} * 2"}
scalars: {n: "{N}"}
arrays:
  a: {type: float64, extents: ["{N} + 2", n], shift_bytes: 32}
  c: {type: float32, extents: [4], space: constant}
  t: local int32:{M}
global_size: ["{M}", 4]
local_size: [8, 1]
global_offset: [1, 0]
fold: 2y
loads: ["a[x + {N}, y]", "c[x % 4]"]
stores: "t[local_x]"
atomics: ["a[0, 0] if x == 1"]
operations: {fp64: 3.5}
registers: 40
""")
    read = read_launch_source(path, parameters={"N": 4})
    assert read.ndrange.global_size == (8, 4)
    assert read.ndrange.global_offset == (1, 0)
    assert read.folds == ((1, 2),)
    assert read.registers == 40
    assert read.name == "mine"
    assert read.buffers == {"a": 192, "c": 16}
    assert read.local_bytes == 32
    assert [one.line for one in read.facts.accesses] == [12, 12, 13, 14]
    assert read.alignments == {"a": 32}
    with pytest.raises(ProblemFileError, match="no parameter is called X"):
        read_launch_source(path, parameters={"X": 3})
    with pytest.raises(ProblemFileError, match="cannot be read"):
        read_launch_source(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("old", "new", "line", "complaint"),
    [
        ("loads", "lods", 3, "did you mean `loads`"),
        ("[4, 4]", "[4, 0]", 2, "at least 1"),
        ("a[x][y]", "a[x*y][y]", 3, "not affine"),
        ("a[x][y]", "q[x]", 3, "'q' is not declared"),
        ("float32:4x4", "float33:4x4", 1, "'float33' is unknown"),
        ('loads: ["a[x][y]"]', "loads: []", 1, "no access is given"),
        ("loads", "fold: 2q\nloads", 3, "such as 2z"),
        ("loads", "local_size: [8, 1]\nloads", 3, "exceeds global size 4"),
        ("loads", "operations: {fp63: 1}\nloads", 1, "expected a count"),
        ('"float32:4x4"', "{type: float32, space: private}", 1, "expected one of global"),
        ("global_size: [4, 4]\n", "", 1, "`global_size` is missing"),
        ("[4, 4]", '["{N}", 4]', 2, "{N} is no parameter"),
    ],
)
def test_errors_name_file_and_line(
    tmp_path: Path, old: str, new: str, line: int, complaint: str
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(ProblemFileError, match=re.escape(complaint)) as caught:
        read_launch_source(path)
    assert str(caught.value).startswith(f"{path}:{line}:")


def test_fitted_hit_rates_survive_their_file(tmp_path: Path) -> None:
    """Writes fits with errors, keeps the shipped ones beside them, and reads all back."""
    truth = HitRate(form=find_hit_rates().l2_overlap.form, a=1.0, b=0.001, c=5.0)
    on_curve = [(x / 10, truth.at(x / 10)) for x in range(1, 31)]
    points = {"l2_overlap": on_curve, "l1_load": [(1.0, 1.0)]}
    fits = fit_all(points)
    assert set(fits) == {"l2_overlap"}
    path = tmp_path / "mine.yaml"
    write_hit_rates(path, "made up", fits, points)
    read = read_hit_rates_file(str(path))
    assert read.l2_overlap.c == pytest.approx(5.0, rel=1e-3)
    assert (read.l1_load.a, read.name) == (find_hit_rates().l1_load.a, "mine")
    assert "standard_errors" in path.read_text()
    assert read_hit_rates_file("kernelcast") == find_hit_rates()
    for text in ("", "schema: other", "[1, 2]", "schema: kernelcast-hit-rates-1"):
        path.write_text(text)
        with pytest.raises(InputError):
            read_hit_rates_file(str(path))
    with pytest.raises(InputError, match=r"needs 4 points .*l2_store: 1"):
        fit_all({"l2_store": [(1.0, 1.0)]})


def test_hit_rates_follow_from_volumes() -> None:
    """Derives from the model's own volumes the hit rates that it used."""
    machine = find_machine("v100")
    source = read_launch_source(ROOT / "examples/models/accesses/stencil3d25pt.yaml")
    measured = []
    for local_size in ((32, 4, 8), (64, 4, 4), (8, 8, 16)):
        volumes = configure(source, machine, local_size).volumes.per_update()
        counted = {
            "l2_load_bytes_per_update": volumes["L2_to_L1"],
            "dram_load_bytes_per_update": volumes["DRAM_to_L2"],
        }
        measured.append((local_size, (), counted))
    points = derive_points(source, machine, measured)
    counts = {name: len(own) for name, own in points.items()}
    assert counts == {"l1_load": 3, "l2_overlap": 3, "l2_store": 0}
    for name, own in points.items():
        rate: HitRate = getattr(find_hit_rates(), name)
        for over, hit_rate in own:
            assert hit_rate == pytest.approx(rate.at(over), abs=1e-6)


def test_compares_with_measurements() -> None:
    machine = find_machine("v100")
    source = read_launch_source(ROOT / "examples/models/accesses/stencil3d25pt.yaml")
    sizes = ((32, 4, 8), (64, 4, 4), (8, 8, 16))
    loads = [configure(source, machine, one).predict("l2_load_bytes_per_update") for one in sizes]
    measured = [
        (size, (), {"l2_load_bytes_per_update": load / factor})
        for size, load, factor in zip(sizes, loads, (1.1, 0.9, 1.2), strict=True)
    ]
    [found] = compare_with_measured(source, machine, measured)
    assert found["mean_error"] == pytest.approx((0.1 + 0.1 + 0.2) / 3)
    assert found["bias"] == pytest.approx((0.1 - 0.1 + 0.2) / 3)
    assert found["kendall_tau"] == pytest.approx(1)
    [alike] = compare_with_measured(source, machine, measured[:1])
    assert alike["kendall_tau"] is None


def test_reads_measurements_as_csv_and_json(tmp_path: Path) -> None:
    table = tmp_path / "m.csv"
    table.write_text(
        "function,oversubscription,hit_rate,local_size,fold,dram_load_bytes_per_update\n"
        'l1_load,0.5,0.9,,,\n,,,"32,4,8",2z,16.5\n'
    )
    rows = [
        {"function": "l1_load", "oversubscription": 0.5, "hit_rate": 0.9},
        {"local_size": [32, 4, 8], "fold": "2z", "dram_load_bytes_per_update": 16.5},
    ]
    listed = tmp_path / "m.json"
    listed.write_text(json.dumps(rows))
    assert read_measurements(table) == read_measurements(listed)
    _, [launch] = read_measurements(table)
    assert launch[:2] == ((32, 4, 8), ((2, 2),))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.csv", ""),
        ("m.csv", "function,oversubscription,hit_rate\nl3,1,0.5\n"),
        ("m.csv", "function,oversubscription,hit_rate\nl1_load,1,1.5\n"),
        ("m.csv", "local_size,fold\n32,\n"),
        ("m.csv", "local_size,dram_load_bytes_per_update\n32,nan\n"),
        ("m.json", "{"),
        ("m.json", '{"a": 1}'),
    ],
)
def test_refuses_measurements_that_say_nothing(tmp_path: Path, name: str, text: str) -> None:
    """Names the file and what a row needs."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=re.escape(str(path))):
        read_measurements(path)
