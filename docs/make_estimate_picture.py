"""Draws the way of an estimate: the modules that one traced `Predictor.estimate` enters.

``python docs/make_estimate_picture.py [DEVICE]`` predicts a launch of pyopencl objects on the first
device whose platform's name contains DEVICE, all in one process, and follows every call of a
function of the package. A box is a module that was called from another room, with the function that
did most for the caller and the first sentence of what this function says of itself. Rooms of plain
data (`records`, `expressions`) are left out, and calls back into a room that is on the way. Of each
room the module below which most calls were made is shown, then others, ten at most.
"""

import ast
import os
import sys
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "kernelcast"
PICTURE = ROOT / "docs" / "explanation" / "pictures" / "estimate.svg"
MOST_BOXES = 10
_LEFT_OUT = ("records", "expressions")
_SOURCE = "kernel void NAME(global float *a, global const float *b) { int i = get_global_id(0); "
_BODIES = {"first": "a[i] = b[i]; }", "triad": "a[i] = b[i] + 2.0f * a[i]; }"}
_WORK_ITEMS = 1 << 24
_WIDTH, _ROW, _INDENT = 12.0, 0.72, 0.42


Entry = tuple[str, str]
"""A module that was called from another room, and the function that was called."""


@dataclass
class Trace:
    """Calls of the package's functions, by how rooms were entered on the way to them."""

    calls: Counter[Entry] = field(default_factory=Counter)
    """Calls below each entry."""
    callers: dict[Entry, list[Entry]] = field(default_factory=dict)
    """Entries on the way when an entry was made first, the outermost first."""
    _stacks: dict[int, list[tuple[FrameType, str, str]]] = field(default_factory=dict)

    def look(self, frame: FrameType, event: str, _: object) -> None:
        """Note a call: what `sys.setprofile` asks for."""
        path = Path(frame.f_code.co_filename)
        if event not in {"call", "return"} or not path.is_relative_to(PACKAGE):
            return
        stack = self._stacks.setdefault(threading.get_ident(), [])
        if event == "return":
            while stack and stack.pop()[0] is not frame:
                pass
            return
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        stack.append((frame, module, frame.f_code.co_qualname))
        entered: list[Entry] = []
        rooms = set(_LEFT_OUT)  # who is called back enters nothing new
        for _, name, function in stack:
            room = name.partition(".")[0]
            if room not in rooms:
                rooms.add(room)
                self.callers.setdefault((name, function), list(entered))
                entered.append((name, function))
        self.calls.update(entered)

    def choose(self) -> list[Entry]:
        """Choose the entries to show, one of a module, in the order in which they were made."""
        heaviest: dict[str, Entry] = {}
        for entry, _ in self.calls.most_common():
            heaviest.setdefault(entry[0], entry)
        first_of_room: dict[str, Entry] = {}
        for module, entry in heaviest.items():
            first_of_room.setdefault(module.partition(".")[0], entry)
        wanted = dict.fromkeys([*first_of_room.values(), *heaviest.values()])
        chosen = list(wanted)[:MOST_BOXES]
        return [entry for entry in self.callers if entry in chosen]


def trace(platform: str) -> Trace:
    """Trace a first answer about a kernel, after another one has imported what is needed."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KERNELCAST_DATA"] = folder
        import pyopencl as cl

        import kernelcast

        devices = (device for one in cl.get_platforms() if platform in one.name
                   for device in one.get_devices())  # fmt: skip
        context = cl.Context([next(devices)])
        queue = cl.CommandQueue(context)
        buffers = [cl.Buffer(context, cl.mem_flags.READ_WRITE, 4 * _WORK_ITEMS) for _ in range(2)]
        found = Trace()
        with kernelcast.Predictor() as predictor:
            for name, body in _BODIES.items():
                program = cl.Program(context, _SOURCE.replace("NAME", name) + body).build()
                kernel = cl.Kernel(program, name)
                launch = kernelcast.Launch(kernel, (_WORK_ITEMS,), (64,), buffers, queue=queue)
                if name != "first":
                    threading.setprofile(found.look)
                    sys.setprofile(found.look)
                predictor.estimate(launch)
            sys.setprofile(None)
            threading.setprofile(None)
    return found


def read_sentence(module: str, function: str) -> str:
    """Read the first sentence of a function's docstring, or of its module's."""
    node: Any = ast.parse((PACKAGE / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
    text = ast.get_docstring(node) or ""
    for name in function.split("."):
        node = next((one for one in node.body if getattr(one, "name", "") == name), None)
        if node is None:
            return text.partition("\n\n")[0].partition(". ")[0]
    text = ast.get_docstring(node) or text
    return " ".join(text.partition("\n\n")[0].split()).partition("; ")[0]


def draw(found: Trace) -> None:
    """Draw a row per module, further to the right the deeper it is called."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.patches import FancyBboxPatch

    mpl.rcParams["svg.hashsalt"] = "kernelcast"
    mpl.rcParams["svg.fonttype"] = "none"
    entries = found.choose()
    height = len(entries) * _ROW + 0.2
    figure = Figure(figsize=(_WIDTH, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, _WIDTH), ylim=(0, height))
    axes.axis("off")
    places: dict[str, tuple[float, float]] = {}
    for row, entry in enumerate(entries):
        module, function = entry
        above = [name for name, _ in found.callers[entry] if name in places]
        left = 0.2 + _INDENT * len(above)
        middle = height - 0.1 - (row + 0.5) * _ROW
        if above:
            parent_left, parent_middle = places[above[-1]]
            corner = parent_left + 0.2
            axes.plot([corner, corner, left], [parent_middle - 0.27, middle, middle],
                      color="#4a6785", linewidth=1, zorder=0)  # fmt: skip
        places[module] = (left, middle)
        axes.add_patch(FancyBboxPatch(
            (left, middle - 0.27), 3.4, 0.54, boxstyle="round,pad=0,rounding_size=0.08",
            facecolor="#eef3f8", edgecolor="#4a6785",
        ))  # fmt: skip
        axes.text(left + 0.12, middle + 0.11, module, va="center", fontsize=11, color="#1d2b3a")
        axes.text(left + 0.12, middle - 0.13, function, va="center", fontsize=9, color="#4a6785",
                  family="monospace")  # fmt: skip
        axes.text(left + 3.6, middle, read_sentence(module, function), va="center", fontsize=10,
                  color="#1d2b3a")  # fmt: skip
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    found = trace(sys.argv[1] if len(sys.argv) > 1 else "")
    draw(found)
    sys.stdout.writelines(f"{module}: {function}\n" for module, function in found.choose())
