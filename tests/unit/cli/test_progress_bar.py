"""The progress bar of long work."""

import pytest

from kernelcast.cli.terminal import progress_bar


def _show(capsys: pytest.CaptureFixture[str], *told: tuple[int, int, str, float | None]) -> str:
    with progress_bar(is_wanted=True) as tell:
        for one in told:
            tell(*one)
    return capsys.readouterr().err


def test_it_says_what_is_done_and_what_the_rest_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it is told, else by the pace of the parts that are done."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    shown = _show(capsys, (2, 9, "nbody: sampling", 125.0))
    assert "2/9" in shown
    assert "about 2 min left" in shown
    assert "nbody: sampling" in shown
    assert "left" not in _show(capsys, (1, 9, "fits", None))
    assert "about" in _show(capsys, (1, 9, "fits", None), (2, 9, "fits", None))


def test_a_pipe_gets_none(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard error stays free for errors."""
    assert not _show(capsys, (1, 2, "fits", None))
