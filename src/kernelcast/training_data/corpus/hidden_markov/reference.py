"""The step with all pairs of states at once."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernelcast.training_data.reference import Array, Reference, Value


def expected(values: Sequence[Value], parameters: Mapping[str, int]) -> dict[int, Array]:
    """Return the new likelihoods and the paths with one more step."""
    states = parameters["STATES"]
    path = np.array(values[1])
    old, transition, emission = (np.asarray(value) for value in values[2:5])
    step, observation = int(np.asarray(values[8])), int(np.asarray(values[9]))
    # in the kernel's precision, or other predecessors could win
    through = old[np.newaxis] + transition.reshape(states, states)
    path[step * states : (step + 1) * states] = np.argmax(through, axis=1)
    emitted = emission[observation * states : (observation + 1) * states]
    return {0: through.max(axis=1) + emitted, 1: path}


REFERENCES = {
    "viterbi_one_step": Reference(expected=expected, small={"STATES": 512}, tolerance=1e-6)
}
