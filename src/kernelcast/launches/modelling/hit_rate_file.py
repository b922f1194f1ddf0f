"""Hit rates as YAML: fitted ones are written with their errors and read back for estimates."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from kernelcast.analytic.gpu.hit_rates import (
    FUNCTIONS,
    HIT,
    MISS,
    HitRate,
    HitRateFit,
    HitRates,
    find_hit_rates,
    fit_hit_rate,
)
from kernelcast.launches.modelling.hit_rate_points import HitRatePoint
from kernelcast.records.errors import InputError

SCHEMA = "kernelcast-hit-rates-1"
_LEAST_POINTS = 4
_WIDEST_SCATTER = 0.25
_NUMBERS = ("a", "b", "c")


def fit_all(points: Sequence[HitRatePoint]) -> dict[str, HitRateFit]:
    """Fit each hit rate that has at least four points which determine it."""
    found = {}
    for function in FUNCTIONS:
        own = [one for one in points if one.function == function]
        if len(own) >= _LEAST_POINTS:
            shipped: HitRate = getattr(find_hit_rates(), function)
            fit = fit_hit_rate(
                [one.oversubscription for one in own],
                [one.hit_rate for one in own],
                form=shipped.form,
            )
            if 0 < fit.c_error < math.inf and fit.rate.deviation < _WIDEST_SCATTER:
                found[function] = fit
    if not found:
        counts = {name: sum(one.function == name for one in points) for name in FUNCTIONS}
        given = ", ".join(f"{name}: {count}" for name, count in counts.items())
        msg = (
            f"no hit rate can be fitted: each needs {_LEAST_POINTS} points that follow a sigmoid "
            f"({given}); measure more local sizes"
        )
        raise InputError(msg)
    return found


def make_hit_rates(name: str, provenance: str, fits: Mapping[str, HitRateFit]) -> HitRates:
    """Put fitted hit rates in the place of the shipped ones; the others stay."""
    return replace(
        find_hit_rates(),
        name=name,
        provenance=provenance,
        **{function: fit.rate for function, fit in fits.items()},
    )


def write_hit_rates(path: Path, rates: HitRates, fits: Mapping[str, HitRateFit]) -> None:
    """Write a set of hit rates with the errors of those that were fitted."""
    content: dict[str, object] = {
        "schema": SCHEMA,
        "name": rates.name,
        "provenance": rates.provenance,
    }
    for function in FUNCTIONS:
        rate: HitRate = getattr(rates, function)
        entry: dict[str, object] = {"form": rate.form}
        entry |= {name: _round(getattr(rate, name)) for name in _NUMBERS}
        entry["deviation"] = _round(rate.deviation)
        fit = fits.get(function)
        if fit is None:
            entry["fitted"] = False
        else:
            errors = {"a": fit.a_error, "b": fit.b_error, "c": fit.c_error}
            entry["standard_errors"] = {key: _round(value) for key, value in errors.items()}
            entry["points"] = fit.points
        content[function] = entry
    try:
        path.write_text(yaml.safe_dump(content, sort_keys=False, width=100), encoding="utf-8")
    except OSError as error:
        msg = f"{path}: the hit rates cannot be written: {error.strerror or error}"
        raise InputError(msg) from error


def read_hit_rates_file(wanted: str) -> HitRates:
    """Find a shipped set of hit rates by its name, or read a file that `write_hit_rates` wrote."""
    path = Path(wanted)
    if path.suffix.lower() not in {".yaml", ".yml"}:
        return find_hit_rates(wanted)
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        if content["schema"] != SCHEMA:
            msg = f"{path}: schema {content['schema']!r}; expected {SCHEMA}"
            raise InputError(msg)
        rates = {function: _read_rate(content[function]) for function in FUNCTIONS}
        return HitRates(name=str(content["name"]), provenance=str(content["provenance"]), **rates)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        msg = f"{path}: the hit rates cannot be read: {error}"
        raise InputError(msg) from error
    except (KeyError, TypeError, ValueError) as error:
        msg = f"{path}: no hit rates: {error!r}; `kernelcast model fit` writes such files"
        raise InputError(msg) from error


def _read_rate(entry: Mapping[str, Any]) -> HitRate:
    numbers = {name: float(entry[name]) for name in (*_NUMBERS, "deviation")}
    form = str(entry["form"])
    if form not in {MISS, HIT}:
        msg = f"form {form!r} is neither {MISS} nor {HIT}"
        raise ValueError(msg)
    return HitRate(form=form, **numbers)


def _round(value: float) -> float:
    """Keep six digits: no fit knows more."""
    return float(f"{value:.6g}")
