from pathlib import Path

import pytest

from kernelcast.collection.corpus.corpus import prepare_launch
from kernelcast.launches.bounds_check import list_overruns, refuse_overruns
from kernelcast.records.arguments import BufferArgument, ElementType, ScalarArgument
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.training_data.applications import Application, find_applications


def test_texts_name_the_place_and_how_many_more() -> None:
    """Three places are listed, the others counted; fitting buffers give nothing."""
    line = NDRange(global_size=(64,), local_size=(16,))
    stores = "".join(f"a[i + {k}] = 0;\n" for k in range(1, 6))
    head = "kernel void f(global int *a, int n) { int i = get_global_id(0);"
    kernel = Kernel(name="f", source=f"{head} {stores} }}")

    def give(count: int) -> tuple[str, ...]:
        buffer = BufferArgument(element=ElementType("int32"), count=count)
        scalar = ScalarArgument(element=ElementType("int32"), values=(1,))
        return list_overruns(kernel, line, [buffer, scalar])

    texts = give(64)
    assert len(texts) == 3
    assert "a[i + 1]" in texts[0]
    assert "work-item (63)" in texts[0]
    assert "256" in texts[0]
    assert texts[-1].endswith("2 more places do so")
    assert give(69) == ()


@pytest.mark.parametrize("application", find_applications(), ids=lambda one: one.folder.name)
def test_right_launches_are_not_refused(application: Application, tmp_path: Path) -> None:
    """Every kernel of the corpus keeps within its buffers, and so it is judged."""
    for kernel in application.kernels:
        size = {kernel.size.parameter: kernel.size.fit(64)}
        problem = prepare_launch(
            kernel, size, local_size=kernel.local_sizes[0], cache_folder=tmp_path
        ).problem
        refuse_overruns(problem.kernel, problem.ndrange, problem.arguments)
