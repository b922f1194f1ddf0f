"""Predicts and measures every example on every device, and says how well that went.

::

    python examples/run_demo.py                          all examples, all devices
    python examples/run_demo.py --device pocl triad      one of each

It drives the command line as a script of your own would: `kernelcast devices --json`, then
`kernelcast estimate FILE --measure --json` for each example and device. What a device cannot run
(double precision where there is none, a buffer it has no room for) is shown with its reason and
fails nothing. Exit status 1 only if not one example was answered.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

EXAMPLES = Path(__file__).resolve().parent
COMMAND = str(Path(sys.executable).with_name("kernelcast"))
_REASON_CHARACTERS = 200

console = Console(highlight=False, soft_wrap=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One example on one device.

    Parameters
    ----------
    example : str
        Its name.
    predicted_s, measured_s : float
        Of the whole launch, in seconds.
    error, one_run_error, cost : float
        Signed relative error; what one measured run is off the median of the others, in the mean;
        device time of the samples over the measured time.
    build_s, rest_s : float
        What else the answer took, in seconds: the device's compiler, and all other host time.
    """

    example: str
    predicted_s: float
    measured_s: float
    error: float
    one_run_error: float
    cost: float
    build_s: float
    rest_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """An example without an answer, and why."""

    example: str
    reason: str


def main(words: Sequence[str] | None = None) -> int:
    """Run the demo; give its exit status."""
    options = _read_options(words)
    problems = _find_problems(options.examples)
    devices = _find_devices(options.device)
    answered = 0
    for number, device in enumerate(devices, start=1):
        console.print(f"\n[bold]device {number} of {len(devices)}: {escape(device)}[/bold]")
        begin = time.monotonic()
        outcomes = list(_run_device(device, problems, options))
        answers = [one for one in outcomes if isinstance(one, Answer)]
        answered += len(answers)
        _print_summary(answers, len(problems), time.monotonic() - begin)
    if not answered:
        console.print("\nno example was answered on any device")
    return 0 if answered else 1


def _read_options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="predict and measure the examples")
    parser.add_argument("examples", nargs="*", metavar="EXAMPLE", help="names; all if left out")
    parser.add_argument("--device", action="append", metavar="ID", help="id, or its beginning")
    parser.add_argument(
        "--timeout", type=float, default=60.0, metavar="S", help="seconds for one example [60]"
    )
    parser.add_argument(
        "--device-seconds", type=float, default=150.0, metavar="S",
        help="begin no further example on a device after so many seconds [150]",
    )  # fmt: skip
    return parser.parse_args(words)


def _find_problems(names: Sequence[str]) -> list[Path]:
    """Give the examples' problem files, all or those named."""
    problems = {path.stem: path for path in sorted(EXAMPLES.glob("*/*.yaml"))}
    unknown = [name for name in names if name not in problems]
    if unknown:
        sys.exit(f"no example is called {', '.join(unknown)}; there are: {', '.join(problems)}")
    return [problems[name] for name in names or problems]


def _find_devices(wanted: Sequence[str] | None) -> list[str]:
    """Give the ids of the devices that work, or those asked for."""
    if wanted:
        return list(wanted)
    done = _call(["devices", "--json"])
    if done.returncode != 0:
        sys.exit(done.stderr.strip())
    return [_id_of(one) for one in json.loads(done.stdout) if not one.get("broken_reason")]


def _id_of(report: dict[str, Any]) -> str:
    return str(report["id"])


def _run_device(
    device: str, problems: Sequence[Path], options: argparse.Namespace
) -> Iterator[Answer | Refusal]:
    """Run the examples one after the other, printing each as it ends."""
    console.print(
        f"         {'example':<16} {'predicted':>10} {'measured':>10} {'error':>8} {'one run':>8} "
        f"{'cost':>7}"
    )
    begin = time.monotonic()
    for number, problem in enumerate(problems, start=1):
        if time.monotonic() - begin > options.device_seconds:
            reason = f"not begun: {options.device_seconds:g} s for this device are over"
            outcome: Answer | Refusal = Refusal(example=problem.stem, reason=reason)
        else:
            with console.status(f"{problem.stem} on {escape(device)} ..."):
                outcome = _run_example(device, problem, options.timeout)
        console.print(f"[{number:>3}/{len(problems):>2}]  ".replace("[", r"\["), end="")
        _print_outcome(outcome)
        yield outcome


def _run_example(device: str, problem: Path, timeout_s: float) -> Answer | Refusal:
    """Predict and measure one example on one device."""
    words = ["estimate", str(problem), "--device", device, "--measure", "--json"]
    done = _call([*words, "--timeout", f"{timeout_s:g}"])
    try:
        found: dict[str, Any] = json.loads(done.stdout)[0]
    except (ValueError, LookupError):  # refused before it had an object to print
        return Refusal(example=problem.stem, reason=_shorten(done.stderr))
    if "error_message" in found:
        return Refusal(example=problem.stem, reason=_shorten(found["error_message"]))
    return Answer(
        example=problem.stem,
        predicted_s=found["seconds"],
        measured_s=found["measured_seconds"],
        error=found["error"],
        one_run_error=found["one_run_error"],
        cost=found["sampling_seconds"] / found["measured_seconds"],
        build_s=found["cost"]["build_seconds"],
        rest_s=found["cost"]["rest_seconds"],
    )


def _call(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def _shorten(text: str) -> str:
    """Put a message of many lines on one."""
    line = " ".join(text.split()) or "no answer and no message"
    return line if len(line) <= _REASON_CHARACTERS else line[:_REASON_CHARACTERS] + " ..."


def _print_outcome(outcome: Answer | Refusal) -> None:
    name = f"{outcome.example:<16}"
    if isinstance(outcome, Refusal):
        console.print(f"{name} [yellow]no answer[/yellow]: {escape(outcome.reason)}")
        return
    console.print(
        f"{name} {_format_s(outcome.predicted_s):>10} {_format_s(outcome.measured_s):>10} "
        f"{outcome.error:>+8.1%} {outcome.one_run_error:>8.1%} {outcome.cost:>7.1%}"
    )


def _format_s(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds >= 1 else f"{seconds * 1e3:.1f} ms"


def _print_summary(answers: Sequence[Answer], asked: int, took_s: float) -> None:
    """Print errors beside what one whole run says of the others: what was possible here and now."""
    line = f"{len(answers)} of {asked} examples answered in {took_s:.0f} s"
    if answers:
        errors = [abs(one.error) for one in answers]
        runs = [one.one_run_error for one in answers]
        worst = max(answers, key=lambda one: abs(one.error))
        line += (
            f"\nabsolute error: mean {statistics.mean(errors):.1%}, "
            f"median {statistics.median(errors):.1%}, "
            f"largest {abs(worst.error):.1%} ({worst.example})"
            f"\none whole run for the others: mean {statistics.mean(runs):.1%}, "
            f"median {statistics.median(runs):.1%}, largest {max(runs):.1%}"
            f"\nsampling cost: median {statistics.median(one.cost for one in answers):.1%} of the "
            f"whole run, largest {max(one.cost for one in answers):.1%}"
            f"\nbeside it: build {_format_s(statistics.median(one.build_s for one in answers))}, "
            f"the rest {_format_s(statistics.median(one.rest_s for one in answers))} (medians)"
        )
    console.print(line)


if __name__ == "__main__":
    sys.exit(main())
