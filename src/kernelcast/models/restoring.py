"""From a fitted model's state back to the model; the inverse of `FittedModel.state`."""

from typing import Any, cast

import numpy as np

from kernelcast.models.conformal import restore_calibration
from kernelcast.models.correction import CorrectionModel, FittedCorrection
from kernelcast.models.gate import Gate
from kernelcast.models.history import FittedHistory, HistoryModel, restore_launches
from kernelcast.models.learned.forest import FittedForest, check_nodes
from kernelcast.models.learned.learner import FittedLearner, State
from kernelcast.models.learned.ridge import FittedRidge
from kernelcast.models.learned.svr import FittedSvr
from kernelcast.models.preparation import Preparation
from kernelcast.models.protocol import FittedModel, TimeModel
from kernelcast.models.references import LINEAR
from kernelcast.models.rules import FittedRule, RuleModel
from kernelcast.models.space import Space, mirror_points
from kernelcast.records.errors import InputError


def restore_model(model: TimeModel, state: State) -> FittedModel:
    """Make a fitted model of its state."""
    try:
        if isinstance(model, CorrectionModel):
            return _restore_correction(model, state)
        if isinstance(model, HistoryModel):
            return _restore_history(model, state)
        if isinstance(model, RuleModel):
            return _restore_rule(model, state)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        msg = f"model {model.name}: its numbers do not fit together ({error!r}); train it anew"
        raise InputError(msg) from error
    msg = f"model {model.name}: a {type(model).__name__} cannot be restored"
    raise InputError(msg)


def _restore_rule(model: RuleModel, state: State) -> FittedRule:
    return FittedRule(
        model=model,
        schema_id=str(state["schema_id"]),
        calibration=restore_calibration(cast("State", state["calibration"])),
        facts=cast("dict[str, object]", state["facts"]),
    )


def _restore_history(model: HistoryModel, state: State) -> FittedHistory:
    launches = restore_launches(state)
    seconds = np.asarray(state["seconds"], dtype=np.float64)
    noise = np.asarray(state["noise"], dtype=np.float64)
    _require(seconds.shape == noise.shape == (len(launches),), "launches and their times")
    fallback = _restore_rule(RuleModel(name=model.name), cast("State", state["fallback"]))
    return FittedHistory(
        model=model, fallback=fallback, launches=launches, seconds=seconds, noise=noise
    )


def _restore_correction(model: CorrectionModel, state: State) -> FittedCorrection:
    space = _restore_space(state)
    learned = model.learner.restore(cast("State", state["learned"]))
    _check_learned(learned, space)
    share, threshold, fade = (float(one) for one in cast("list[float]", state["gate"]))
    return FittedCorrection(
        model=model,
        schema_id=str(state["schema_id"]),
        reference=LINEAR,  # of every model of the catalogue
        space=space,
        learned=learned,
        gate=Gate(share=share, threshold=threshold, fade=fade),
        calibration=restore_calibration(cast("State", state["calibration"])),
        facts=cast("dict[str, object]", state["facts"]),
    )


def _restore_space(state: State) -> Space:
    held = cast("dict[str, Any]", state["preparation"])
    arrays = {
        name: np.asarray(held[name], dtype=np.float64)
        for name in Preparation.__slots__
        if name not in {"names", "indicators"}
    }
    preparation = Preparation(
        names=tuple(str(one) for one in held["names"]),
        indicators=np.asarray(held["indicators"], dtype=np.int64),
        **arrays,
    )
    columns, marks = len(preparation.names), len(preparation.indicators)
    for name in ("factors", "fill", "centre", "scale"):
        _require(arrays[name].shape == (columns,), f"columns and {name}")
    inside = (preparation.indicators >= 0) & (preparation.indicators < columns)
    _require(bool(inside.all()), "columns and indicators")
    _require(arrays["weights"].shape == (columns + marks,), "columns and weights")
    points = np.ascontiguousarray(state["points"], dtype=np.float64)
    _require(
        arrays["components"].shape == (columns + marks, points.shape[1]), "components and points"
    )
    return Space(
        preparation=preparation,
        points=points,
        mirror=mirror_points(points),
        reach=float(cast("float", state["reach"])),
    )


def _check_learned(learned: FittedLearner, space: Space) -> None:
    """Refuse weights and nodes that do not belong to the space."""
    if isinstance(learned, FittedSvr):
        _require(learned.weights.shape == (len(space.points),), "points and weights")
        _require(learned.gamma > 0, "the kernel and its width")
    elif isinstance(learned, FittedRidge):
        _require(learned.weights.shape == (space.points.shape[1],), "dimensions and weights")
    elif isinstance(learned, FittedForest):
        columns = len(space.preparation.weights)
        _require(check_nodes(learned, columns), "nodes of the trees")


def _require(fits: bool, what: str) -> None:
    if not fits:
        msg = f"{what} disagree"
        raise ValueError(msg)
