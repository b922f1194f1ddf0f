from pathlib import Path

import pytest

from kernelcast.collection.corpus_problems import prepare_launch
from kernelcast.launches.source_check import refuse_overruns
from kernelcast.records.arguments import BufferArgument, ElementType, ScalarArgument
from kernelcast.records.errors import OverrunError
from kernelcast.records.kernel import Kernel
from kernelcast.records.ndrange import NDRange
from kernelcast.training_data.applications import Application, find_applications


def test_texts_name_the_place_and_how_many_more() -> None:
    """Three places are listed, the others counted; fitting buffers give nothing."""
    line = NDRange(global_size=(64,), local_size=(16,))
    stores = "".join(f"a[i + {k}] = 0;\n" for k in range(1, 6))
    head = "kernel void f(global int *a, int n) { int i = get_global_id(0);"
    kernel = Kernel(name="f", source=f"{head} {stores} }}")

    def refuse(count: int) -> None:
        buffer = BufferArgument(element=ElementType("int32"), count=count)
        scalar = ScalarArgument(element=ElementType("int32"), values=(1,))
        refuse_overruns(kernel, line, [buffer, scalar])

    with pytest.raises(OverrunError) as caught:
        refuse(64)
    text = str(caught.value)
    assert text.count("leaves the buffer a") == 3
    assert "a[i + 1]" in text
    assert "work-item (63)" in text
    assert "256" in text
    assert "2 more places do so" in text
    refuse(69)


@pytest.mark.parametrize("application", find_applications(), ids=lambda one: one.folder.name)
def test_right_launches_are_not_refused(application: Application, tmp_path: Path) -> None:
    """Every kernel of the corpus keeps within its buffers, and so it is judged."""
    for kernel in application.kernels:
        size = {kernel.size.parameter: kernel.size.fit(64)}
        problem = prepare_launch(
            kernel, size, local_size=kernel.local_sizes[0], cache_folder=tmp_path
        ).problem
        refuse_overruns(problem.kernel, problem.ndrange, problem.arguments)
