"""Times that are estimated while a model is exported."""

from kernelcast.launches.devices import choose_devices
from kernelcast.launches.settings import EstimateSettings
from kernelcast.predictor.estimates import estimate_on_devices
from kernelcast.records.device import DeviceDescription
from kernelcast.records.errors import InputError
from kernelcast.scheduling.starpu.times import ExpectedTime, Wanted, deviation_of


class EstimatesNow:
    """Runs a few work-groups of each kernel on its device."""

    def __init__(self, settings: EstimateSettings, *, timeout_s: float) -> None:
        self._settings = settings
        self._timeout_s = timeout_s
        self._devices: dict[str, DeviceDescription] = {}

    def find(self, wanted: Wanted) -> ExpectedTime | None:
        """Estimate a launch."""
        if wanted.problem is None:
            return None
        (answer,) = estimate_on_devices(
            wanted.problem,
            [self._choose(wanted)],
            settings=self._settings,
            timeout_s=self._timeout_s,
        )
        estimate = answer.answer.estimate
        if estimate is None:
            # Exactly one of the two is there, see `DeviceAnswer`.
            raise answer.answer.error or InputError(wanted.label)
        return ExpectedTime(
            seconds=estimate.seconds,
            deviation_s=deviation_of(estimate.low, estimate.high, estimate.coverage),
            origin=str(estimate.tier),
            device_id=estimate.device_id,
        )

    def _choose(self, wanted: Wanted) -> DeviceDescription:
        """Find the device; once for all sizes."""
        if wanted.device_id not in self._devices:
            found = choose_devices((wanted.device_id,) if wanted.device_id else ())
            if len(found) != 1:
                names = ", ".join(one.id for one in found)
                msg = (
                    f"{wanted.label}: several devices could be meant ({names}); name one by "
                    "`device` in the codelet file or by --device"
                )
                raise InputError(msg)
            self._devices[wanted.device_id] = found[0]
        return self._devices[wanted.device_id]
