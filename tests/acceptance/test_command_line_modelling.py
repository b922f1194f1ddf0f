"""The commands that read kernels and ask analytic models, none of which needs a device."""

import re
import shutil
from pathlib import Path

import pytest

from acceptance.conftest import Ask, Run


def test_features_are_read_without_a_device(
    run: Run, ask: Ask, problem: Path, repository: Path, list_documented: Ask
) -> None:
    """Every documented key of `features --json` is there, of what the source alone tells."""
    documented = list_documented("features")
    assert {"problem", "accesses", "counters", "vector", "devices"} <= documented
    (features,) = ask("features", "--no-device", problem, "-p", "N=2**7")
    assert documented <= features.keys()
    assert features["global_size"] == [128]
    x, y, _ = features["parameters"]
    assert (x["name"], x["is_read"], x["is_written"]) == ("x", True, False)
    assert (y["name"], y["is_read"], y["is_written"]) == ("y", False, True)
    assert [row["offset_bytes"] for row in features["accesses"]] == ["4*global_id(0)"] * 2
    assert {"line", "executions", "operations", "memory"} <= features["lines"][0].keys()
    assert (features["coverage"], features["devices"]) == (1, [])
    (chosen,) = ask("features", "--no-device", problem, "--group", "static")
    assert {name.partition(".")[0] for name in chosen["vector"]["features"]} == {"static"}
    shown = run("features", "--no-device", "--source", problem).stdout
    assert "sum = fma(sum, factor, 1.0f);" in shown
    examples = sorted(repository.glob("examples/*/*.yaml"))
    ended = run("features", "--no-device", *examples)
    assert (ended.status, ended.stdout.count("\nMemory accesses\n")) == (0, len(examples))


def test_gaps_of_a_kernel_are_named_and_others_answered(run: Run, problem: Path) -> None:
    """A call of what is not known is a gap; a kernel that is not there hides no other problem."""
    broken = problem.with_name("broken.yaml")
    text = problem.read_text(encoding="utf-8")
    broken.write_text(text.replace("fma(", "unheard_of("), encoding="utf-8")
    ended = run("features", "--no-device", broken)
    assert ended.status == 0
    assert "unheard_of" in ended.stdout
    broken.write_text(text.replace("kernel: scale", "kernel: other"), encoding="utf-8")
    ended = run("features", "--no-device", broken, problem)
    assert ended.status == 2
    assert "'other'" in ended.stderr
    assert "kernel scale" in ended.stdout


REQUIRED = """\
code: |
  #define T 16
  typedef struct { float factor; ushort width; int height; } sizes;
  kernel __attribute__((reqd_work_group_size(T, T, 1)))
  void turn(global const float *a, global float *b, const sizes s, local float (*t)[T + 1])
  {
      int x = get_global_id(0), y = get_global_id(1), lx = get_local_id(0), ly = get_local_id(1);
      if (x < s.width && y < s.height) t[ly][lx] = s.factor * a[y * s.width + x];
      barrier(CLK_LOCAL_MEM_FENCE);
      x = get_group_id(1) * T + lx;
      y = get_group_id(0) * T + ly;
      if (x < s.height && y < s.width) b[y * s.height + x] = t[lx][ly];
  }
kernel: turn
global_size: [1024, 512]
args:
  - {buffer: float, count: 512000}
  - {buffer: float, count: 512000}
  - struct: {factor: float, width: ushort, height: int}
    value: {factor: 2, width: 1000, height: 512}
  - {local: 1088}
"""


def test_required_local_sizes_and_structures_are_read(run: Run, ask: Ask, tmp_path: Path) -> None:
    """Without a device a launch has the local size that its kernel requires, and the whole numbers
    of a structure bound its accesses."""
    path = tmp_path / "turn.yaml"
    path.write_text(REQUIRED, encoding="utf-8")
    (features,) = ask("features", "--no-device", path)
    assert (features["local_size"], features["notes"]) == ([16, 16], [])
    assert "structure, 12 B" in run("features", "--no-device", path).stdout
    (launch,) = ask("model", "gpu", path, "--machine", "a100")
    assert launch["local_size"] == [16, 16]
    assert launch["volumes"]["DRAM_to_L2"] == pytest.approx(4 * 512000, rel=0.05)


def test_machine_descriptions_are_shown_and_compared(run: Run, ask: Ask, tmp_path: Path) -> None:
    """Shipped or own descriptions need no device: keys of the file, ratios, a page."""
    benchmarks = ask("calibrate", "--list")
    assert {"launch", "bandwidth", "caches"} <= {row["name"] for row in benchmarks}
    assert all(row["title"] for row in benchmarks)
    (shown,) = ask("calibrate", "--machine", "a100")
    assert {"device_id", "machine"} <= shown.keys()
    assert shown["machine"]["schema"].startswith("kernelcast-machine-")
    clock = shown["machine"]["clock_hz"]
    assert (clock["value"], clock["source"], bool(clock["origin"])) == (1.41e9, "published", True)
    pairs = {row["name"]: row for row in ask("calibrate", "--compare", "a100", "v100")}
    units = pairs["compute_units"]
    assert {"name", "first", "second", "ratio", "intervals_overlap"} <= units.keys()
    assert units["ratio"] == pytest.approx(80 / 108)
    assert "1.41 GHz" in run("calibrate", "--machine", "a100").stdout
    page = tmp_path / "report.html"
    assert run("calibrate", "--machine", "mi210", "--report", page).status == 0
    text = page.read_text(encoding="utf-8")
    assert "Instinct MI210" in text
    assert "<svg" in text
    assert not re.search(r"<(?:script|link|img)\b", text)


def test_kernels_are_compiled_for_devices_that_are_not_here(
    ask: Ask, run: Run, tmp_path: Path
) -> None:
    """Code, or counts of its instructions and registers, by a clang of the user's."""
    source = tmp_path / "scale.cl"
    source.write_text("kernel void scale(global float *y, float f) { y[get_global_id(0)] *= f; }")
    tried = run("compile", source)
    if tried.status and "clang" in tried.stderr:
        pytest.skip("no clang is installed; `pip install 'kernelcast[compile]'` brings one")
    assert (tried.status, "@scale" in tried.stdout) == (0, True)
    compiled = ask("compile", source, "-D", "UNUSED=1", "--target", "sm_70")
    assert {"target", "compiler", "log", "missing", "kernels", "code"} <= compiled.keys()
    assert (compiled["target"], compiled["kernels"]) == ("sm_70", ["scale"])
    assert ".target sm_70" in compiled["code"]
    facts = ask("compile", source, "--target", "gfx90a", "--facts")["facts"]["scale"]
    assert {"registers", "local_bytes", "private_bytes", "spill_bytes", "instructions",
            "accesses"} <= facts.keys()  # fmt: skip
    assert facts["registers"]["value"] > 0
    refused = run("compile", source, "--target", "sm_new")
    assert (refused.status, "'sm_new'" in refused.stderr) == (2, True)
    source.write_text("kernel void scale(global float *y) { y[0] = unknown_name; }")
    refused = run("compile", source)
    assert (refused.status, refused.stdout) == (2, "")
    assert "unknown_name" in refused.stderr


def test_gpus_are_modelled(
    run: Run, ask: Ask, problem: Path, repository: Path, tmp_path: Path
) -> None:
    """Times, limiters, volumes; typed accesses, foldings, rankings, pictures, fitted hit rates."""
    stencil = repository / "examples/models/accesses/stencil2d5pt.yaml"
    (launch,) = ask("model", "gpu", stencil, "--machine", "a100", "--local", "128,2")
    assert {
        "kernel", "machine", "local_size", "fold", "updates", "seconds", "limiter", "limiters",
        "volumes", "quantities", "notes",
    } <= launch.keys()  # fmt: skip
    assert (launch["local_size"], launch["updates"]) == ([128, 2], 8192**2)
    assert launch["limiter"] in launch["limiters"]
    assert launch["volumes"]["DRAM_to_L2"] >= 8 * 8190**2
    both = run("model", "gpu", problem, "--machine", "a100", "--machine", "v100").stdout
    assert "a100" in both
    assert "v100" in both
    typed = ("--array", "src:float64:640x512", "--array", "dst:float64:640x512", "--global",
             "640,512", "--store", "dst[x][y]", "--machine", "a100", "--local", "32,8")  # fmt: skip
    (launch,) = ask("model", "gpu", *typed, "--access", "src[x-1][y] if x > 0",
                       "--operation", "fp64=2")  # fmt: skip
    assert launch["updates"] == 640 * 512
    wrong = run("model", "gpu", *typed, "--access", "src[x][w]")
    text, mark = wrong.stderr.splitlines()[-2:]
    assert (wrong.status, text[mark.index("^")]) == (2, "w")
    (sweep,) = ask("model", "gpu", stencil, "--machine", "a100", "--sweep-local",
                      "--sweep-fold")  # fmt: skip
    times = [row["seconds"] for row in sweep["configurations"]]
    assert times == sorted(times)
    assert {row["fold"] for row in sweep["configurations"]} == {"", "2y"}
    picture = tmp_path / "picture.png"
    assert run("model", "gpu", stencil, "--machine", "a100", "--plot", picture).status == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    points = ["function,oversubscription,hit_rate"]
    points += [f"l1_load,{over / 4},{1 - 0.5 * min(1, over / 12)}" for over in range(20)]
    (tmp_path / "points.csv").write_text("\n".join(points), encoding="utf-8")
    rates = tmp_path / "rates.yaml"
    assert run("model", "fit", tmp_path / "points.csv", "--out", rates).status == 0
    ask("model", "gpu", stencil, "--machine", "a100", "--hit-rates", rates)


def test_loops_and_kernels_are_modelled_on_cpus(
    run: Run, ask: Ask, problem: Path, repository: Path, tmp_path: Path
) -> None:
    """Sweeps, units, branches and pictures of C loops; seconds of an OpenCL problem."""
    loops = repository / "examples/loops"
    machine = ("--machine", "ivy-bridge-ep", "--core", "table")
    words = ("model", "cpu", loops / "3d-long-range.c", "-D", "M", 130, *machine)
    swept = ask(*words, "-D", "N", "500:600:50")
    assert {"kernel", "machine", "sizes", "transitions"} <= swept.keys()
    assert {
        "constants", "cores", "cache_predictor", "unit", "value", "least_cycles", "most_cycles",
        "iterations_per_line", "levels", "in_core", "ecm", "roofline", "notes",
    } <= swept["sizes"][0].keys()  # fmt: skip
    assert [row["constants"]["N"] for row in swept["sizes"]] == [500, 550, 600]
    loads = [row["levels"][2]["misses"] for row in swept["sizes"]]
    assert loads[0] < loads[1] == loads[2]
    single = ask(*words, "-D", "N", 500, "--unit", "cy/It")
    assert {"kernel", "machine", "sizes", "transitions", "scaling", "advice"} <= single.keys()
    (size,) = single["sizes"]
    assert size["value"] == pytest.approx(size["ecm"]["cycles"] / 8)
    branch = tmp_path / "branch.c"
    branch.write_text(
        "double a[N], b[N], c[N], t;\n"
        "for (int i = 0; i < N; ++i) { if (a[i] > t) c[i] = a[i] * b[i]; else c[i] = 0; }\n"
    )
    branching = ("model", "cpu", branch, "-D", "N", 4000000, *machine)
    both, few = (ask(*branching, *more)["sizes"][0] for more in ((), ("--taken", "0.02")))
    assert both["least_cycles"] < few["ecm"]["cycles"] < both["ecm"]["cycles"]
    branch.write_text("double a[N];\nfor (int i = 0; i < N; ++i)\n  a[i*i] = 1.0;\n")
    refused = run("model", "cpu", branch, "-D", "N", 100, *machine)
    assert (refused.status, "branch.c:3" in refused.stderr) == (2, True)
    assert "no value for M" in run("model", "cpu", loops / "3d-long-range.c", "-D", "N", 100,
                                   *machine).stderr  # fmt: skip
    picture = tmp_path / "sweep.png"
    assert run(*words, "-D", "N", "100:900:100", "--plot", picture).status == 0
    assert picture.stat().st_size > 10_000
    calibrated = repository / "benchmarks/results/calibration/intel-amd-epyc-c960.yaml"
    launches = ask("model", "cpu", problem, "--machine", calibrated, "-D", "N",
                      "1048576:4194304:1048576")  # fmt: skip
    times = [row["seconds"] for row in launches]
    assert [row["value"] for row in launches] == [2**20 * factor for factor in (1, 2, 3, 4)]
    assert times == sorted(times)
    assert "limited by" in run("model", "cpu", problem, "--machine", calibrated).stdout


def test_loops_are_measured(run: Run, ask: Ask, repository: Path) -> None:
    """The same loop is compiled and timed here, and stands beside its prediction."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler is installed")
    words = ("model", "cpu", repository / "examples/loops/triad.c", "-D", "N", 2000, "--core",
             "table", "--machine", "ivy-bridge-ep", "--measure")  # fmt: skip
    (size,) = ask(*words)["sizes"]
    measured = size["measured"]
    assert measured["cpu_s"] > 0
    assert measured["error"] == pytest.approx(size["value"] / measured["value"] - 1)
    refused = run(*words, "--compiler", "no-such-cc")
    assert (refused.status, "no-such-cc" in refused.stderr) == (2, True)


def test_scratchpad_processors_are_modelled(
    run: Run, ask: Ask, repository: Path, tmp_path: Path
) -> None:
    """Terms by the paper's names, breakdowns of several kernels, what-ifs, OpenCL kernels."""
    kernels = repository / "examples/scratchpad/kernels"
    nbody, kmeans = kernels / "nbody.yaml", kernels / "kmeans.yaml"
    rows = ask("model", "scratchpad", nbody, kmeans)
    assert {
        "kernel", "machine", "active_cpes", "t_total_s", "t_mem_s", "t_dma_s", "t_g_s", "t_comp_s",
        "t_overlap_s", "copy_in_s", "is_fully_overlapped", "dma", "gload", "compute",
        "average_ilp", "notes",
    } <= rows[0].keys()  # fmt: skip
    assert [row["kernel"] for row in rows] == ["nbody", "kmeans"]
    shown = run("model", "scratchpad", nbody).stdout
    assert all(term in shown for term in ("T_total", "T_comp", "T_DMA", "T_overlap", "MRP", "NG"))
    smaller = ask("model", "scratchpad", kmeans, "--what-if", "dma")
    assert [row["parts"] for row in smaller["granularity"]] == [1, 2, 4, 8]
    picture = tmp_path / "picture.png"
    assert run("model", "scratchpad", kmeans, "--what-if", "dma", "--plot", picture).status == 0
    assert picture.stat().st_size > 10_000
    derived = run("model", "scratchpad", repository / "examples/transpose/transpose.yaml")
    assert (derived.status, "taken for DMA copies" in derived.stdout) == (0, True)
    refused = run("model", "scratchpad", nbody, "--active-cpes", 300)
    assert (refused.status, "SW26010 has 256" in refused.stderr) == (2, True)
