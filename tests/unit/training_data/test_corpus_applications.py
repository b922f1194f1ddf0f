from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.records.errors import InputError
from kernelcast.training_data.applications import SizeRange, find_kernels, read_application

SIZE = {"parameter": "N", "least": 64, "most": 4096}
KERNEL = {"problem": "k.yaml", "size": SIZE, "local_sizes": [[64], [256]]}
CONTENT = {"name": "App", "suite": "own", "title": "something", "kernels": [KERNEL]}


def write(folder: Path, content: object) -> Path:
    """Write an application's folder."""
    (folder / "k.yaml").touch()
    (folder / "application.yaml").write_text(yaml.safe_dump(content))
    return folder


def test_reads_what_is_written(tmp_path: Path) -> None:
    """Gives every value of the file, defaults filled in."""
    application = read_application(write(tmp_path, CONTENT))
    (kernel,) = application.kernels
    assert (application.name, application.suite.value, application.title) == (
        "App", "own", "something"
    )  # fmt: skip
    assert kernel.name == f"{tmp_path.name}/k"
    assert kernel.local_sizes == ((64,), (256,))
    assert kernel.size == SizeRange(parameter="N", least=64, most=4096)
    assert (kernel.table_2, kernel.uses_fp64, kernel.note) == (None, False, "")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"suite": "Rodinia"}, "suite: expected one of"),
        ({"titel": "x"}, "titel: unknown key, did you mean `title`"),
        ({"kernels": []}, "expected at least one"),
        ({"name": [3]}, "name: expected a text, found a list"),
        ({"kernels": [{**KERNEL, "problem": "none.yaml"}]}, "there is no file"),
        ({"kernels": [{**KERNEL, "local_sizes": [[64], [8, 8]]}]}, "of the same length"),
        ({"kernels": [{**KERNEL, "local_sizes": [["x"]]}]}, "expected a number"),
        ({"kernels": [{**KERNEL, "fp64": 1}]}, "fp64: expected true or false"),
        ({"kernels": [{**KERNEL, "size": {**SIZE, "least": True}}]}, "least: expected a number"),
        ({"kernels": [{**KERNEL, "size": {**SIZE, "most": 64}}]}, "least < most"),
        ({"kernels": [{**KERNEL, "size": {**SIZE, "multiple_of": 60}}]}, "no multiple of 60"),
        ({"kernels": [{**KERNEL, "size": {"least": 1, "most": 2}}]}, "`parameter` is missing"),
        ({"kernels": ["k.yaml"]}, "expected `key: value` pairs"),
    ],
)
def test_names_file_and_fault(tmp_path: Path, change: dict[str, object], complaint: str) -> None:
    """Begins every complaint with the file and says what is wrong in it."""
    folder = write(tmp_path, CONTENT | change)
    with pytest.raises(InputError, match=complaint) as caught:
        read_application(folder)
    assert str(caught.value).startswith(str(folder / "application.yaml"))


@given(st.integers(1, 50), st.integers(1, 40), st.integers(1, 400), st.floats(0, 1e9))
def test_fitted_sizes_are_allowed_and_nearest(
    multiple: int, first: int, steps: int, wanted: float
) -> None:
    """Gives an allowed value, a power of two too; no other multiple is nearer to the one wanted."""
    powers = SizeRange(parameter="N", least=2, most=1 << steps % 20 + 2, power_of_two=True)
    assert powers.can_be(powers.fit(wanted))
    sizes = SizeRange(
        parameter="N",
        least=first * multiple,
        most=(first + steps) * multiple,
        multiple_of=multiple,
    )
    found = sizes.fit(wanted)
    assert sizes.can_be(found)
    for other in (found - multiple, found + multiple):
        if sizes.can_be(other):
            assert abs(found - wanted) <= abs(other - wanted)


def test_patterns_name_applications_kernels_and_table_2() -> None:
    """Finds kernels by application, stem, Table 2 and glob; says when there is none."""
    assert {one.stem for one in find_kernels("mat_vec_mul")} >= {"coal0", "uncoal1"}
    assert [one.name for one in find_kernels("ckMedian")] == ["median_filter/median"]
    assert find_kernels("coal3") == find_kernels("mat_vec_mul/coal3")
    with pytest.raises(InputError, match="corpus ls"):
        find_kernels("no such kernel")
