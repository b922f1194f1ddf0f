"""The models there are, by name, and how a file becomes one of them again."""

from collections.abc import Mapping
from dataclasses import replace

from kernelcast.models.columns import Variant
from kernelcast.models.correction import ALL_GROUPS, CorrectionModel
from kernelcast.models.history import HistoryModel
from kernelcast.models.learned.forest import GRADIENT_BOOSTING, RANDOM_FOREST
from kernelcast.models.learned.ridge import RidgeLearner
from kernelcast.models.learned.svr import SvrLearner
from kernelcast.models.protocol import TimeModel
from kernelcast.models.references import ColumnReference
from kernelcast.models.rules import RuleModel
from kernelcast.records.errors import InputError

HYBRID = "hybrid"
"""The model that estimates use: the gated SVR on everything."""


def _make_svr(name: str, *, without: str = "", is_gated: bool = True) -> CorrectionModel:
    groups = tuple(one for one in ALL_GROUPS if one != without)
    return CorrectionModel(
        name=name, learner=SvrLearner(), feature_groups=groups, is_gated=is_gated
    )


_ABLATED = ("static", "compiler", "sampled", "counters", "analytic")
_ALL: tuple[TimeModel, ...] = (
    RuleModel(name="two_point", reference=ColumnReference(name="two_point")),
    RuleModel(name="linear"),
    RuleModel(name="pooled_rate", reference=ColumnReference(name="pooled")),
    RuleModel(name="analytic", reference=ColumnReference(name="analytic")),
    RuleModel(name="mwp_cwp", reference=ColumnReference(name="mwp_cwp")),
    HistoryModel(),
    CorrectionModel(name="ridge", learner=RidgeLearner()),
    CorrectionModel(name="random_forest", learner=RANDOM_FOREST),
    CorrectionModel(name="gradient_boosting", learner=GRADIENT_BOOSTING),
    _make_svr("svr", is_gated=False),
    *(_make_svr(f"hybrid_without_{one}", without=one) for one in _ABLATED),
    _make_svr(HYBRID),
    replace(_make_svr("hybrid_pooled"), variant=Variant.POOLED),
    CorrectionModel(
        name="static",
        learner=SvrLearner(),
        reference=ColumnReference(name="work"),
        feature_groups=("static", "compiler", "counters", "analytic"),
    ),
)
_MODELS: Mapping[str, TimeModel] = {one.name: one for one in _ALL}
RIVALS = (
    "two_point", "linear", "pooled_rate", "analytic", "mwp_cwp", "history", "ridge",
    "random_forest", "gradient_boosting", "svr", "hybrid_without_analytic",
    "hybrid_without_counters", HYBRID,
)  # fmt: skip
"""Models that a validation compares unless others are named."""
ABLATION = (HYBRID, *(f"hybrid_without_{one}" for one in _ABLATED))
"""The hybrid, and the hybrid without each feature group."""


def list_models() -> tuple[str, ...]:
    """Give the names of all models."""
    return tuple(_MODELS)


def make_model(name: str) -> TimeModel:
    """Give a model that has not learned yet.

    Examples
    --------
    >>> make_model("hybrid").name
    'hybrid'
    """
    if name not in _MODELS:
        msg = f"no model is called {name!r}; choose of {', '.join(_MODELS)}"
        raise InputError(msg)
    return _MODELS[name]
