import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kernelcast.collection.corpus_problems import LOCAL_PARAMETERS
from kernelcast.features.analysis import infer_accesses
from kernelcast.launches.problem_file import read_parameters, read_problem
from kernelcast.records.arguments import Access, BufferArgument
from kernelcast.records.errors import InputError
from kernelcast.records.problem import Problem
from kernelcast.training_data.applications import (
    Application,
    CorpusKernel,
    SizeRange,
    find_applications,
    find_kernels,
    load_reference,
    read_application,
)

APPLICATIONS = find_applications()
KERNELS = [kernel for one in APPLICATIONS for kernel in one.kernels]
LARGEST_GPU_BYTES = 128 * 2**30
LEAST_WORK_GROUPS = 256
TABLE_2 = [
    "binomial",
    "blackscholes", "BoxRowsLmem", "convolutionRows", "convolutionColumns", "VectorHypot",
    "compress", "DotProduct", "FiniteDifferences", "ViterbiOneStep", "histogram64", "matmul",
    "uncoal0", "uncoal1", "coal0", "coal1", "coal2", "coal3", "ckMedian", "nbody",
    "Quasi", "InvCND", "reorderDatakey", "radixSortBlockKey", "ckSobel", "sortLocal",
    "sortLocal1", "mergeGlobal", "mergeLocal", "trans_naive", "pcr", "cycle",
    "cp", "lattice", "StreamCollideX", "ComputeQ", "binning", "reorder", "sort", "rearrange",
    "gridding", "mb_calc", "calc_8", "calc_16", "computeX", "tpacf",
    "fft1D_512", "ifft1D_512", "bfs", "sgemmNN", "sgemmNT", "spmv_csr_vector", "stencilKernel",
    "initialize2", "conj_grad_2", "conj_grad_6", "ep", "cffts1", "cffts2", "cffts3", "indexmap",
    "evolve", "setiv", "resid", "norm2u3", "rprj3", "psinv", "interp",
]  # fmt: skip


def _problem(kernel: CorpusKernel, folder: Path, **parameters: int) -> Problem:
    """Read the problem with empty files in place of generated inputs."""
    for name in re.findall(r"\binit: (\w+\.npy)", kernel.problem_path.read_text()):
        (folder / name).touch()
    return read_problem(kernel.problem_path, parameters=parameters, inputs_folder=folder)


def _local(local_size: tuple[int, ...]) -> dict[str, int]:
    return dict(zip(LOCAL_PARAMETERS, local_size, strict=False))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda one: one.name)
def test_takes_every_local_size_at_every_size(kernel: CorpusKernel, tmp_path: Path) -> None:
    """Has whole work-groups of the local size asked for: usually, at both ends, at odd sizes."""
    size = kernel.size
    odd = [size.least]
    for _ in range(3):  # with no more factors than the range asks for
        odd.append(size.fit(odd[-1] + size.multiple_of))
    usual = read_parameters(kernel.problem_path)
    assert size.can_be(int(usual[size.parameter]))
    assert _local(kernel.local_sizes[0]).items() <= usual.items()
    for local_size in kernel.local_sizes:
        local = _local(local_size)
        assert _problem(kernel, tmp_path, **local).ndrange.work_group_count >= LEAST_WORK_GROUPS
        for value in (*odd, size.most):
            problem = _problem(kernel, tmp_path, **{size.parameter: value}, **local)
            assert problem.ndrange.local_size == local_size
            assert problem.ndrange.is_uniform, value
            assert value in odd[1:] or problem.buffer_bytes <= LARGEST_GPU_BYTES


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda one: one.name)
def test_what_a_kernel_declares_is_true(kernel: CorpusKernel, tmp_path: Path) -> None:
    """Its reference's parameters, buffers that are only read, and need of double precision."""
    small = load_reference(kernel).small
    assert set(small) <= set(read_parameters(kernel.problem_path)) - set(LOCAL_PARAMETERS)
    read_parameters(kernel.problem_path, parameters=small)
    problem = _problem(kernel, tmp_path)
    inferred = infer_accesses(problem.kernel, len(problem.arguments))
    for argument, found in zip(problem.arguments, inferred, strict=True):
        if isinstance(argument, BufferArgument) and argument.access is Access.READ:
            assert found in {None, Access.READ}
        element = getattr(argument, "element", None)
        assert kernel.uses_fp64 or element is None or element.base != "float64"


@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda one: one.folder.name)
def test_application_is_complete(application: Application) -> None:
    """Says what it computes, and has no reference, problem or source that nothing uses."""
    package = import_module(f"kernelcast.training_data.corpus.{application.folder.name}")
    assert package.__doc__
    stems = {kernel.stem for kernel in application.kernels}
    references = import_module(f"{package.__name__}.reference").REFERENCES
    assert set(references) == stems
    assert {path.stem for path in application.folder.glob("*.yaml")} - {"application"} == stems
    texts = [kernel.problem_path.read_text() for kernel in application.kernels]
    sources = {name for text in texts for name in re.findall(r"source:\s*(\S+)", text)}
    used = {path.name for path in application.folder.glob("*.cl")}
    included = {
        name
        for path in application.folder.glob("*.cl")
        for name in re.findall(r'#include\s+"(.+?)"', path.read_text())
    }
    assert used == sources | included


def test_names_are_unique() -> None:
    """Gives every kernel a name of its own, and every kernel of Table 2 one kernel; patterns name
    applications, stems and Table 2."""
    assert len({kernel.name for kernel in KERNELS}) == len(KERNELS)
    counts = Counter(kernel.table_2 for kernel in KERNELS if kernel.table_2)
    assert set(counts.values()) == {1}
    assert set(TABLE_2) <= set(counts)
    assert {one.stem for one in find_kernels("mat_vec_mul")} >= {"coal0", "uncoal1"}
    assert [one.name for one in find_kernels("ckMedian")] == ["median_filter/median"]
    assert find_kernels("coal3") == find_kernels("mat_vec_mul/coal3")
    with pytest.raises(InputError, match="corpus ls"):
        find_kernels("no such kernel")


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
