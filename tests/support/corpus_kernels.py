"""The kernels of the corpus and of the examples as text, without the data that they are run on."""

from pathlib import Path

from kernelcast.launches.problem_file import read_template
from kernelcast.records.kernel import Kernel
from kernelcast.training_data.applications import find_kernels

_EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def list_kernels() -> dict[str, Kernel]:
    """List kernels at the parameters of their problem files, by ``corpus/`` or ``examples/``."""
    paths = {f"corpus/{kernel.name}": kernel.problem_path for kernel in find_kernels()}
    for path in sorted(_EXAMPLES.glob("*/*.yaml")):
        if "\nkernel:" in f"\n{path.read_text(encoding='utf-8')}":
            paths[f"examples/{path.stem}"] = path
    return {name: _read(path) for name, path in paths.items()}


def _read(path: Path) -> Kernel:
    template = read_template(path)
    return template.bind(template.first).read_kernel()
