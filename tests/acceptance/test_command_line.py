"""The command line where no device is needed: what each command does, prints and refuses."""

import json
import re
from pathlib import Path

import pytest

from acceptance.conftest import Ask, Run

COMMANDS = {
    "balance", "calibrate", "collect", "compare", "compile", "corpus", "data", "devices",
    "estimate", "features", "model", "models", "serve", "starpu", "trace", "train", "tune",
    "validate",
}  # fmt: skip
GROUPS = {
    "corpus": {"check", "ls", "write"},
    "data": {"check", "export", "import", "ls", "merge", "remodel", "rm", "show"},
    "model": {"cpu", "fit", "gpu", "scratchpad"},
    "models": {"ls", "pin", "rollback", "show", "unpin"},
    "serve": {"token"},
    "serve token": {"create", "list", "revoke"},
    "starpu": {"export"},
}
OBSERVATIONS = Path(__file__).with_name("data") / "observations.parquet"


@pytest.fixture
def store(home: Path, ask: Ask) -> Path:
    """Bring 60 observations of five kernels on three devices into the store."""
    (added,) = ask("data", "import", OBSERVATIONS)
    assert (added["added"], added["known"], added["failures"]) == (60, 0, 0)
    return home / "observations.sqlite"


def test_every_command_is_there_with_its_help(run: Run, run_process: Run) -> None:
    """All commands and their sub-commands have a line each, and explain themselves."""
    shown = run("--help").stdout
    assert set(re.findall(r"^  ([a-z]+)  +\S", shown.split("Commands:")[1], re.M)) == COMMANDS
    for group, names in GROUPS.items():
        shown = run(*group.split(), "--help").stdout
        assert set(re.findall(r"^  ([a-z]+)  +\S", shown.split("Commands:")[1], re.M)) == names
    leaves = [*(COMMANDS - GROUPS.keys()), "serve"]
    leaves += [f"{group} {name}" for group in GROUPS for name in GROUPS[group] if name != "token"]
    for words in leaves:
        ended = run(*words.split(), "--help")
        assert (ended.status, ended.stderr) == (0, ""), words
        assert ended.stdout.startswith(f"Usage: kernelcast {words}")
        assert run(*words.split(), "-h").stdout == ended.stdout
    version = run_process("--version")
    assert version.status == 0
    assert re.fullmatch(r"kernelcast, version \d+\.\d+\.\S+\n", version.stdout)
    for words, meant in ((["estimte"], "estimate"), (["data", "exprt"], "export")):
        ended = run(*words)
        assert ended.status == 2
        assert f"No such command '{words[-1]}'. Did you mean '{meant}'?" in ended.stderr


def test_shells_complete_commands_and_options(run_process: Run) -> None:
    """A shell is offered commands, commands of groups and options by what is typed."""
    for typed, offered in (
        ("kernelcast est", "estimate"), ("kernelcast data ex", "export"),
        ("kernelcast estimate --no-s", "--no-sampling"),
    ):  # fmt: skip
        ended = run_process(
            _KERNELCAST_COMPLETE="bash_complete", COMP_WORDS=typed,
            COMP_CWORD=str(len(typed.split()) - 1),
        )  # fmt: skip
        assert [line.partition(",")[2] for line in ended.stdout.split()] == [offered]


def test_bad_input_is_refused_by_name(run: Run, problem: Path, home: Path) -> None:
    """Each command ends with 2, prints nothing, and names in one line what was given."""
    folder = problem.parent
    (folder / "file").touch()
    for words, said in (
        (("balance", problem, "--cores", "intel"), "cores 'intel'"),
        (("balance", problem, "--first-share", "0"), "first share 0.0"),
        (("calibrate", "--only", "nothing"), "no microbenchmark 'nothing'"),
        (("calibrate", "--quick", "--full"), "--quick and --full"),
        (("calibrate", "--machine", "b200"), "no machine description 'b200'"),
        (("calibrate", "--report", "r.pdf"), "reports are written as HTML"),
        (("collect", "--kernels", "no/such"), "no kernel of the corpus matches 'no/such'"),
        (("compile", folder / "none.cl"), "none.cl"),
        (("compare", "linear", "oracle"), "no model is called 'oracle'"),
        (("compare", "linear", "linear", "--data", OBSERVATIONS), "cannot be compared with itself"),
        (("corpus", "check", "nothing"), "no kernel of the corpus matches 'nothing'"),
        (("corpus", "write", "nothing", folder / "x"), "matches 'nothing'"),
        (("data", "ls"), "observations.sqlite: there is no store"),
        (("devices", "--frob"), "'--frob'"),
        (("estimate",), "give at least one problem file"),
        (("estimate", folder / "none.yaml"), "none.yaml: the problem file cannot be read"),
        (("estimate", problem, "-p", "M=1"), "no parameter is called M"),
        (("estimate", problem, "--budget", "2"), "budget 2.0"),
        (("estimate", problem, "--coverage", "1"), "coverage"),
        (("estimate", problem, "--replay", folder / "file"), "file: is no recording"),
        (("estimate", problem, "--plot", folder / "no/x.png"), "there is no folder"),
        (("estimate", problem, "--no-sampling", "--measure"), "--measure"),
        (("features", problem, "--no-device", "--group", "other"), "'other'"),
        (("features", problem, "--no-device", "--device", "x"), "--no-device and --device"),
        (("model", "cpu", folder / "none.c", "--machine", "ivy-bridge-ep"), "none.c"),
        (("model", "gpu", problem, "--machine", "b200"), "no machine description 'b200'"),
        (("model", "gpu", problem, "--machine", "skylake-sp"), "needs a GPU"),
        (("model", "fit", folder / "none.csv"), "none.csv"),
        (("model", "scratchpad", folder / "none.yaml"), "none.yaml"),
        (("models", "show", "linear/x"), "no model linear/x"),
        (("serve", "--port", "70000"), "70000"),
        (("serve", "--trusted-proxy", "proxy.example"), "trusted proxy 'proxy.example'"),
        (("serve", "--token-file", folder / "none"), "none"),
        (("starpu", "export", folder / "none.yaml"), "none.yaml: the codelet file"),
        (("trace", problem, "--method", "guess"), "'guess'"),
        (("trace", problem, "--work-groups", "0"), "--work-groups"),
        (("train", "--data", folder / "none.sqlite"), "there is no store"),
        (("train", "--data", OBSERVATIONS, "--out", folder / "x.skops"), "choose one by --device"),
        (("train", "--data", OBSERVATIONS, "--pooled", "--model", "ridge"), "hybrid_pooled"),
        (("tune",), "give one problem"),
        (("tune", problem, "--models", "guess"), "'guess'"),
        (("tune", problem, "--t4", folder / "t4.json"), "give --measure as well"),
        (("validate", "--models", "linear,,ridge", "--data", OBSERVATIONS), "commas"),
        (("validate", "--data", OBSERVATIONS, "--out", folder / "file/out"), "cannot be written"),
    ):
        ended = run(*words)
        assert (ended.status, ended.stdout) == (2, ""), words
        assert said in ended.stderr, words
        assert "Traceback" not in ended.stderr
        # click shows the command's usage above its own complaints.
        lines = ended.stderr.strip().splitlines()
        assert len(lines) == 1 or lines[0].startswith("Usage: "), words
    assert not (home / "observations.sqlite").exists()


def test_a_store_is_filled_shown_and_exchanged(
    run: Run, ask: Ask, store: Path, tmp_path: Path
) -> None:
    """`data` imports once, lists, shows, exports and merges the same 60 rows."""
    (again,) = ask("data", "import", OBSERVATIONS)
    assert {"file", "kind", "licence", "added", "replaced", "known", "failures"} <= again.keys()
    assert (again["added"], again["known"]) == (0, 60)
    groups = ask("data", "ls")
    assert {
        "group", "rows", "kernels", "devices", "flagged", "shortest_s", "longest_s",
        "median_noise", "newest",
    } <= groups[0].keys()  # fmt: skip
    assert [(row["group"], row["rows"]) for row in groups] == [
        ("device-0", 20), ("device-1", 20), ("device-2", 20),
    ]  # fmt: skip
    assert len(ask("data", "ls", "--by", "kernel")) == 5
    rows = ask("data", "ls", "--rows", "--device", "device-1")
    assert len(rows) == 20
    assert {
        "key", "launch_key", "kernel", "kernel_digest", "device_id", "device", "platform",
        "driver", "global_size", "local_size", "work_groups", "parameters", "seconds", "noise",
        "runs", "origin", "source", "measurement", "flags", "measured_at",
    } <= rows[0].keys()  # fmt: skip
    (shown,) = ask("data", "show", rows[0]["key"][:16])
    assert {"durations_s", "features", "samples"} <= shown.keys()
    assert rows[0]["key"] in run("data", "show", rows[0]["key"]).stdout
    assert run("data", "show", "zz").status == 2
    assert "device-2" in run("data", "ls").stdout
    assert ask("data", "ls", "--failures") == []
    assert ask("data", "check") == []
    copy = tmp_path / "copy.parquet"
    exported = ask("data", "export", copy, "--device", "device-1")
    assert (exported["file"], exported["rows"]) == (str(copy), 20)
    other = tmp_path / "other.sqlite"
    assert ask("data", "import", copy, "--store", other)[0]["added"] == 20
    (merged,) = ask("data", "merge", other)
    assert (merged["added"], merged["known"]) == (0, 20)
    assert ask("data", "merge", store, "--store", other)[0]["added"] == 40
    copy.write_bytes(b"PAR1 no more PAR1")
    ended = run("data", "import", copy)
    assert (ended.status, str(copy) in ended.stderr) == (2, True)
    assert len(ask("data", "ls", "--rows")) == 60


@pytest.mark.usefixtures("store")
def test_rows_are_removed_only_when_it_is_clear(run: Run, ask: Ask) -> None:
    """`data rm` shows what would go, asks, and removes just that; all is never meant."""
    chosen = ("data", "rm", "--kernel", "kernel1", "--device", "device-1")
    planned = ask(*chosen, "--dry-run")
    assert {"count", "removed", "is_dry_run", "observations"} <= planned.keys()
    assert (planned["count"], planned["removed"]) == (4, 0)
    assert run(*chosen, input="n\n").status == 0
    for words in (("--yes",), ("bogus", "--yes"), ("--from", "soon", "--yes")):
        assert run("data", "rm", *words).status == 2
    assert len(ask("data", "ls", "--rows")) == 60
    assert ask(*chosen, "--yes")["removed"] == 4
    assert len(ask("data", "ls", "--rows")) == 56


@pytest.mark.usefixtures("home")
def test_results_of_tuners_are_imported(run: Run, ask: Ask, tmp_path: Path) -> None:
    """T4 results become rows and failures, once it is told on what and in which unit they are."""
    results = tmp_path / "tuned.json"
    valid = {"configuration": {"x": 1}, "times": {"runtimes": [2.0]}, "correctness": 1,
             "invalidity": "correct"}  # fmt: skip
    failed = {**valid, "configuration": {"x": 2}, "invalidity": "timeout"}
    results.write_text(json.dumps({"results": [valid, failed]}), encoding="utf-8")
    assert run("data", "import", results).status == 2
    words = ("data", "import", results, "--measured-on", "A100", "--time-unit", "ms")
    (added,) = ask(*words)
    assert (added["added"], added["failures"]) == (1, 1)
    (row,) = ask("data", "ls", "--rows")
    assert (row["seconds"], row["device"], row["origin"]) == (0.002, "A100", "imported")
    assert len(ask("data", "ls", "--failures")) == 1


@pytest.mark.usefixtures("store")
def test_models_are_trained_shown_and_pinned(run: Run, ask: Ask, home: Path) -> None:
    """A model per device, validated; the pinned or the latest version is in use; rollback works."""
    words = ("train", "--model", "ridge", "--jobs", 1, "--device", "device-0")
    (trained,) = ask(*words)
    assert {
        "name", "model", "place", "devices", "kernels", "rows", "data_digest", "schema",
        "validation",
    } <= trained.keys()  # fmt: skip
    assert (trained["name"], trained["rows"]) == ("ridge/device-0", 20)
    (score,) = trained["validation"]
    assert (score["split"], score["rows"], score["unanswered"]) == ("kernel", 20, 0)
    assert score["mean"] < 0.05
    assert (
        run(*words, "--no-validation", "--data", OBSERVATIONS, "--device", "device-1").status == 0
    )
    models = {row["name"]: row for row in ask("models", "ls")}
    assert {"ridge/device-0", "ridge/device-1"} <= models.keys()
    assert {"versions", "used", "latest", "pinned"} <= models["ridge/device-0"].keys()
    first, second = models["ridge/device-0"]["versions"]
    assert models["ridge/device-0"]["used"] == second
    known = ask("models", "show", "ridge/device-0", "--version", first)
    assert {
        "version",
        "schema",
        "features",
        "learned",
        "trained_with",
        "validation",
    } <= known.keys()
    assert known["validation"] == trained["validation"]
    assert ask("models", "pin", "ridge/device-0", "0001")["used"] == first
    assert ask("models", "show", "ridge/device-0")["version"] == first
    assert ask("models", "unpin", "ridge/device-0")["used"] == second
    assert ask("models", "rollback", "ridge/device-0")["latest"] == first
    refused = run("models", "rollback", "ridge/device-0")
    assert (refused.status, f"no version before {first}" in refused.stderr) == (2, True)
    unknown = run("models", "pin", "ridge/other", "0001")
    assert unknown.status == 2
    assert "no model ridge/other; there are: ridge/device-0, ridge/device-1" in unknown.stderr
    out = home / "one.skops"
    assert run(*words, "--no-validation", "--out", out).status == 0
    assert out.stat().st_size > 1000


def test_models_are_validated_on_what_they_have_not_seen(
    run: Run, ask: Ask, tmp_path: Path
) -> None:
    """Kernels or devices are held out; the report is printed, written, and shown on a page."""
    words = ("validate", "--data", OBSERVATIONS, "--models", "linear,ridge", "--jobs", 1)
    folder = tmp_path / "a/b"
    report = ask(*words, "--out", folder, "--coverage", "0.8")
    assert {
        "format", "split", "coverage", "schema_id", "data_digest", "versions", "scores",
        "rankings", "refused", "rows",
    } <= report.keys()  # fmt: skip
    assert (report["split"], report["coverage"]) == ("kernel", 0.8)
    scores = {(row["model"], row["device"]): row["errors"]["mean"] for row in report["scores"]}
    assert len(scores) == 6
    for device in ("device-0", "device-1", "device-2"):
        assert scores["ridge", device] < 0.05 < scores["linear", device]
    assert json.loads((folder / "validation.json").read_text(encoding="utf-8")) == report
    points = json.loads((folder / "sampling_points.json").read_text(encoding="utf-8"))
    assert {"device", "label", "multiple", "rows", "mean", "median", "p90", "cost"} <= points[
        0
    ].keys()
    page = (folder / "validation.html").read_text(encoding="utf-8")
    assert f"{scores['ridge', 'device-0']:.2%}".replace("%", " %") in page
    assert not re.search(r"<(?:script|link|img)\b|(?:src|href)=\"(?!#)", page)
    shown = run(*words, "--split", "device")
    assert shown.status == 0
    assert "worst of ridge" in shown.stdout
    none = run(*words, "--shortest", 99)
    assert none.status == 2
    assert "0 of at least 99 s" in none.stderr


def test_models_are_compared_kernel_by_kernel(run: Run, ask: Ask, tmp_path: Path) -> None:
    """Two models on the same held-out kernels, with an interval of the difference."""
    words = ("compare", "linear", "ridge", "--data", OBSERVATIONS, "--jobs", 1)
    compared = ask(*words, "--out", tmp_path)
    assert {
        "first", "second", "split", "method", "resamples", "confidence", "devices", "explained",
        "refused",
    } <= compared.keys()  # fmt: skip
    assert len(compared["devices"]) == 3
    for row in compared["devices"]:
        assert row["low"] <= row["difference"] <= row["high"] < 0
        assert row["difference"] == pytest.approx(
            row["second_errors"]["mean"] - row["first_errors"]["mean"]
        )
        assert len(row["kernels"]) == 5
    assert json.loads((tmp_path / "comparison.json").read_text(encoding="utf-8")) == compared
    assert "ridge" in (tmp_path / "comparison.html").read_text(encoding="utf-8")
    shown = run(*words, "--device", "device-0", "--resamples", 200)
    assert (shown.status, "device-0" in shown.stdout) == (0, True)


def test_the_corpus_is_listed_and_copied(run: Run, ask: Ask, tmp_path: Path) -> None:
    """168 kernels with their sizes; a copy is a problem file that every other command takes."""
    kernels = ask("corpus", "ls")
    assert len(kernels) >= 168
    assert {
        "kernel", "application", "suite", "title", "table_2", "size", "local_sizes", "fp64",
        "note", "problem",
    } <= kernels[0].keys()  # fmt: skip
    ended = run("corpus", "write", "dot_product", tmp_path, "--param", "LOCAL0=64")
    assert ended.status == 0
    (path,) = map(Path, ended.stdout.split())
    assert path.is_relative_to(tmp_path)
    (features,) = ask("features", "--no-device", path)
    assert features["local_size"][0] == 64
    assert features["accesses"]


@pytest.mark.usefixtures("home")
def test_tokens_of_the_service_are_made_and_revoked(run: Run, ask: Ask) -> None:
    """A token is shown once, with its scopes; afterwards only its id is known."""
    assert "no tokens yet" in run("serve", "token", "list").stdout
    made = ask("serve", "token", "create", "me", "--scope", "run", "--scope", "estimate")
    assert {"id", "name", "scopes", "created_at", "revoked_at", "token"} <= made.keys()
    assert (made["scopes"], made["revoked_at"]) == (["estimate", "run"], None)
    listed = run("serve", "token", "list", "--json")
    assert made["token"] not in listed.stdout
    (row,) = listed.json()
    assert row.items() <= made.items()
    assert ask("serve", "token", "revoke", made["id"])["revoked_at"]
    assert ask("serve", "token", "list")[0]["revoked_at"]
    shown = run("serve", "token", "create", "you").stdout
    assert len(shown.split()) == 1
    unknown = run("serve", "token", "revoke", "nothing")
    assert (unknown.status, "no token 'nothing'" in unknown.stderr) == (2, True)
