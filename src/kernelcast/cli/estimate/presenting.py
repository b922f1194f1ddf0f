"""Prints what ``kernelcast estimate`` has collected."""

from kernelcast.cli.collecting import CollectedEstimates
from kernelcast.cli.estimate.explanation import list_explanations
from kernelcast.cli.estimate.table import list_warnings, make_table
from kernelcast.cli.request import EstimateRequest
from kernelcast.cli.terminal import show, show_json, show_line
from kernelcast.reports.formats import estimate_to_json


def present(collected: CollectedEstimates, request: EstimateRequest) -> None:
    """Print answers and warnings to standard output, every error to standard error."""
    if request.as_json:
        show_json([estimate_to_json(answer) for answer in collected.answers])
    elif collected.answers:
        wide, narrow = (
            make_table(
                collected.answers,
                coverage=request.coverage,
                is_measured=request.measure,
                is_narrow=is_narrow,
            )
            for is_narrow in (False, True)
        )
        show(wide, narrow=narrow)
        for warning in list_warnings(collected.answers):
            show_line(f"warning: {warning}")
        for line in list_explanations(collected.answers) if request.explain else ():
            show_line(line)
    collected.complain()
