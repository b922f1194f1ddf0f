"""Every feature there is, in the order of the schema, and the vectors made of them."""

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeAlias

from kernelcast.features.vector import analytic as analytic_block
from kernelcast.features.vector import compiler, operations, sampled, sharing, static
from kernelcast.features.vector.compiler import CompilerSource
from kernelcast.features.vector.definitions import Feature, compute_features
from kernelcast.features.vector.sampled import SampledSource
from kernelcast.features.vector.sharing import CounterSource
from kernelcast.features.vector.static import StaticSource
from kernelcast.records.analytic_estimate import AnalyticEstimate
from kernelcast.records.feature_vector import FeatureSchema, FeatureVector, make_vector

Source: TypeAlias = StaticSource | CompilerSource | SampledSource | CounterSource | AnalyticEstimate

SCHEMA_VERSION = 1
"""Grows when a feature keeps its name and changes its meaning."""


@cache
def list_features() -> tuple[Feature[Any], ...]:
    """Give every feature, for the reference; the order is the schema's."""
    return (
        *static.FEATURES, *compiler.FEATURES, *sampled.FEATURES, *sharing.FEATURES,
        *operations.FEATURES, *analytic_block.FEATURES,
    )  # fmt: skip


@cache
def make_schema() -> FeatureSchema:
    """Give the schema of all features."""
    return FeatureSchema(names=tuple(one.name for one in list_features()), version=SCHEMA_VERSION)


def combine(*sources: Source, analytic: Mapping[str, float] | None = None) -> FeatureVector:
    """Make one vector of whatever is there."""
    values: dict[str, float] = {}
    for source in sources:
        values |= _compute(source)
    return make_vector({**values, **(analytic or {})}, make_schema())


def _compute(source: Source) -> dict[str, float]:
    if isinstance(source, StaticSource):
        return compute_features(static.FEATURES, source)
    if isinstance(source, CompilerSource):
        return compute_features(compiler.FEATURES, source)
    if isinstance(source, AnalyticEstimate):
        return compute_features(analytic_block.FEATURES, source)
    if isinstance(source, SampledSource):
        return compute_features(sampled.FEATURES, source)
    return {
        **compute_features(sharing.FEATURES, source),
        **compute_features(operations.FEATURES, source.counters),
    }
