"""Computes the analytic features of stored observations anew, by today's models."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from kernelcast.analytic.cpu.estimate import REVISION
from kernelcast.collection.corpus_problems import prepare_launch
from kernelcast.features.vector import combine
from kernelcast.launches.machines import find_own_machine
from kernelcast.launches.modelling.estimating import estimate_analytically
from kernelcast.launches.modelling.launches import model_launch
from kernelcast.records.errors import InputError, KernelcastError
from kernelcast.records.feature_vector import FeatureSchema, make_vector
from kernelcast.records.observation import Observation
from kernelcast.training_data.applications import CorpusKernel
from kernelcast.training_data.store import Selection, Store

REMODELLED = "computed anew"
_PREFIX = "analytic."


def remodel_rows(
    store: Store,
    wanted: Selection,
    kernels: Iterable[CorpusKernel],
    *,
    report: Callable[[str], None] = lambda _: None,
) -> Counter[str]:
    """Compute the analytic features of stored observations anew; nothing is run."""
    by_name = {(one.application, one.stem): one for one in kernels}
    counts: Counter[str] = Counter()

    made = []  # all are read before one is written: a writer waits for readers of its process
    for one in store.find(wanted):
        try:
            made.append(_remodel(one, by_name))
        except KernelcastError as error:
            counts[str(error).splitlines()[0]] += 1
        else:
            counts[REMODELLED] += 1
            report(f"{counts.total():,} rows")
    store.add_many(made, replace=True)
    return counts


def _remodel(one: Observation, kernels: dict[tuple[str, str], CorpusKernel]) -> Observation:
    launch = one.launch
    kernel = kernels.get((launch.kernel.application, launch.kernel.name))
    ndrange = launch.ndrange
    if kernel is None or ndrange is None or ndrange.local_size is None or one.features is None:
        msg = "no problem file of the kernel is known, or no local size; name files by --problems"
        raise InputError(msg)
    device_id = launch.device.id
    machine = find_own_machine(device_id)
    if machine is None:
        raise InputError(
            f"{device_id}: there is no description of this device; `kernelcast calibrate --device "
            f"{device_id}` makes one"
        )
    size = {kernel.size.parameter: int(launch.parameters[kernel.size.parameter])}
    problem = prepare_launch(kernel, size, local_size=ndrange.local_size).problem
    if problem.kernel.digest != launch.kernel.digest:
        raise InputError("the kernel's source is another one today")
    estimate = estimate_analytically(model_launch(problem), machine)
    old, new = one.features, combine(estimate).as_dict()
    analytic = {name: value for name, value in new.items() if name.startswith(_PREFIX)}
    kept = {name: value for name, value in old.as_dict().items() if not name.startswith(_PREFIX)}
    names = dict.fromkeys((*old.schema.names, *analytic))
    schema = FeatureSchema(names=tuple(names), version=old.schema.version)
    return replace(
        one,
        features=make_vector(kept | analytic, schema),
        versions={**one.versions, "cpu_model": str(REVISION)},
    )
