"""What a confined process can see and do; needs bubblewrap."""

import shutil
import sys
from pathlib import Path

import pytest

import kernelcast
from kernelcast.predictor import confinement as confining
from kernelcast.predictor.confinement import SandboxMode, choose_protection
from kernelcast.records.errors import InputError, KernelRunError
from kernelcast.workers import Confinement, Task, run_isolated
from kernelcast.workers.sandbox import confine

VIEW: Task[tuple[str, ...]] = Task(
    entry="kernelcast.workers.sandbox:list_view", returns=tuple[str, ...]
)
CRASHING = Path(__file__).parents[2] / "support" / "crashing.py"
PACKAGES = Path(kernelcast.__file__).parents[1]
works = pytest.mark.skipif(
    bool(shutil.which("bwrap") is None or choose_protection(SandboxMode.AUTO)[1]),
    reason="no bubblewrap that works",
)


@pytest.fixture
def secrets(tmp_path: Path) -> tuple[str, ...]:
    """Give a store, a token file and a model that lie about, and what no user should see."""
    tmp_path.chmod(0o755)  # as careless as can be: only the sandbox hides them
    names = ("observations.sqlite", "observations.sqlite-wal", "tokens", "model.skops")
    for name in names:
        (tmp_path / name).write_text("secret")
    hidden = ("/etc/shadow", "/etc/passwd", str(Path.cwd()))
    return (*(str(tmp_path / name) for name in names), *hidden)


def look(secrets: tuple[str, ...], confinement: Confinement | None) -> tuple[str, ...]:
    return run_isolated(VIEW, secrets, timeout_s=60, subject="d", confinement=confinement)


@works
def test_a_confined_process_sees_nothing_of_ours(secrets: tuple[str, ...]) -> None:
    """Store, tokens, models, passwords, other processes and the network are out of sight."""
    assert set(secrets) <= {*look(secrets, None), "/etc/shadow"}
    assert look(secrets, Confinement()) == ()


@works
def test_what_is_hidden_is_hidden_in_folders_that_are_seen(
    secrets: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A database within the folders that Python needs is covered; what is allowed is seen."""
    store, folder = Path(secrets[0]), Path(secrets[0]).parent
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    assert look(secrets, Confinement()) == secrets[:4]
    target, link = tmp_path_factory.mktemp("target"), folder / "link"
    target.chmod(0o755)
    (target / "library").write_text("code")
    link.symlink_to(target)
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{folder}:{link}")
    assert look((f"{link}/library",), Confinement()) == (f"{link}/library",)
    assert look(secrets, Confinement(hidden=(store,))) == secrets[1:4]
    assert look(secrets, Confinement(hidden=(folder,))) == ()
    allowed = Confinement(readable=((store, "/tmp/it"),), hidden=(folder,))
    assert look(("/tmp/it", *secrets), allowed) == ("/tmp/it",)


def test_no_secret_of_the_environment_is_passed_on() -> None:
    given = {
        "PGPASSWORD": "a", "KERNELCAST_STORE": "b", "AWS_SECRET_ACCESS_KEY": "c", "HOME": "/d",
        "POCL_AFFINITY": "1",
    }  # fmt: skip
    _, inside = confine([sys.executable], given, Confinement())
    assert inside["POCL_AFFINITY"] == "1"
    assert not {"a", "b", "c", "/d"} & set(inside.values())


@works
def test_a_death_inside_is_told_as_one_outside() -> None:
    with pytest.raises(KernelRunError, match=r"died \(signal SIGSEGV, stage: starting\)"):
        run_isolated(
            Task(entry="crashing:crash"), None, timeout_s=60, subject="d",
            confinement=Confinement(readable=((CRASHING, str(PACKAGES / CRASHING.name)),)),
        )  # fmt: skip


def test_a_missing_sandbox_is_told_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without bubblewrap there is no confinement but a reason, or an error where it is required."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("kernelcast.workers.sandbox.PROGRAM", "no-such-program")
    confining._try_it.cache_clear()
    try:
        confinement, failure = choose_protection(SandboxMode.AUTO)
        assert confinement is None
        assert "install bubblewrap" in failure
        with pytest.raises(InputError, match=r"--sandbox required: .*install bubblewrap"):
            choose_protection(SandboxMode.REQUIRED)
        assert choose_protection(SandboxMode.OFF) == (None, "")
    finally:
        confining._try_it.cache_clear()
