"""Answers that can be made better later, by whoever keeps them."""

from collections.abc import Callable

from kernelcast.predictor.answering.launch_request import LaunchRequest
from kernelcast.predictor.known_launches import Answer, KnownLaunch
from kernelcast.predictor.launch_answers import LaunchAnswers
from kernelcast.predictor.refining import is_open, sample_once


def make_answer(answers: LaunchAnswers, known: KnownLaunch, request: LaunchRequest) -> Answer:
    """Give an answer, its samples, and what makes a better one of it where there is any."""
    return Answer(
        estimate=answers.require(known, request),
        recording=known.record(),
        refine=_refine(answers, known, request),
    )


def _refine(
    answers: LaunchAnswers, known: KnownLaunch, request: LaunchRequest
) -> Callable[[], Answer] | None:
    settings = request.policy.settings
    is_wanted = settings.samples and not settings.measure and not request.is_live
    if not is_wanted or not is_open(known):
        return None
    outcome = known.outcome
    assert outcome is not None
    before = outcome.without_launches()  # it is kept for as long as the answer

    def refine() -> Answer:
        more = KnownLaunch(identity=known.identity, outcome=sample_once(request, before))
        answers.keep_samples(request, more)
        answers.compose_all([(request, more)])
        return make_answer(answers, more, request)

    return refine
