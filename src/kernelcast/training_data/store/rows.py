"""Observations and failures as rows of tables, and back."""

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import sqlalchemy as sa

from kernelcast.records.feature_vector import FeatureSchema
from kernelcast.records.launch_identity import DeviceIdentity, KernelIdentity, LaunchIdentity
from kernelcast.records.observation import FailureRecord, Observation, Origin
from kernelcast.records.observed_times import RunTimes
from kernelcast.training_data.store import plain

Row: TypeAlias = Mapping[str, Any]
"""Values by the names of a table's columns."""


def as_row(mapping: sa.RowMapping) -> Row:
    """Give a database's row by the names of its columns."""
    return {str(name): value for name, value in mapping.items()}


def launch_to_row(launch: LaunchIdentity, measurement: str) -> dict[str, Any]:
    """Write what was run where."""
    return {
        "launch_key": launch.key,
        "measurement": measurement,
        "kernel_digest": launch.kernel.digest,
        "kernel": launch.kernel.name,
        "application": launch.kernel.application,
        "suite": launch.kernel.suite,
        "device_id": launch.device.id,
        "device": launch.device.name,
        "platform": launch.device.platform,
        "driver": launch.device.driver,
        "ndrange": plain.dump_ndrange(launch.ndrange),
        "work_groups": launch.work_group_count,
        "arguments_digest": launch.arguments_digest,
        "parameters": plain.dump(dict(launch.parameters)) if launch.parameters else "{}",
    }


def row_to_launch(row: Row) -> LaunchIdentity:
    """Read what `launch_to_row` wrote."""
    return LaunchIdentity(
        kernel=KernelIdentity(
            name=row["kernel"],
            digest=row["kernel_digest"],
            application=row["application"],
            suite=row["suite"],
        ),
        device=DeviceIdentity(
            id=row["device_id"],
            name=row["device"],
            platform=row["platform"],
            driver=row["driver"],
        ),
        ndrange=plain.load_ndrange(row["ndrange"]),
        arguments_digest=row["arguments_digest"],
        parameters=plain.load_mapping(row["parameters"]),
    )


def observation_to_row(one: Observation, schema_id: str | None) -> dict[str, Any]:
    """Write an observation; `schema_id` is that of its features."""
    first = one.samples[0] if one.samples else None
    return {
        "key": one.key,
        **launch_to_row(one.launch, one.measurement),
        "seconds": one.runs.median_s,
        "durations_s": plain.dump_times(one.runs.durations_s),
        "started_s": plain.dump_times(one.runs.started_s),
        "noise": one.runs.noise,
        "run_count": one.runs.run_count,
        "schema_id": schema_id,
        "features": None if one.features is None else plain.dump_features(one.features),
        "linear_s": None if first is None else first.linear_s,
        "sampling_s": None if first is None else first.sampling_s,
        "samples": plain.dump_samples(one.samples),
        "origin": one.origin.value,
        "source": one.source,
        "flags": plain.dump_flags(one.flags),
        "machine_state": plain.dump_state(one.machine_state),
        "versions": plain.dump_texts(one.versions),
        "measured_at_us": plain.dump_time(one.measured_at),
    }


def row_to_observation(row: Row, schemas: Mapping[str, FeatureSchema]) -> Observation:
    """Read what `observation_to_row` wrote."""
    features = None
    if row["features"] is not None:
        features = plain.load_features(row["features"], schemas[row["schema_id"]])
    return Observation(
        launch=row_to_launch(row),
        runs=RunTimes(
            median_s=row["seconds"],
            durations_s=tuple(json.loads(row["durations_s"])),
            started_s=tuple(json.loads(row["started_s"])),
            noise=row["noise"],
            run_count=row["run_count"],
        ),
        features=features,
        samples=plain.load_samples(row["samples"]),
        origin=Origin(row["origin"]),
        source=row["source"],
        measurement=row["measurement"],
        flags=plain.load_flags(row["flags"]),
        machine_state=plain.load_state(row["machine_state"]),
        versions=plain.load_mapping(row["versions"]),
        measured_at=plain.load_time(row["measured_at_us"]),
    )


def failure_to_row(one: FailureRecord) -> dict[str, Any]:
    """Write a failure."""
    return {
        "key": one.key,
        **launch_to_row(one.launch, one.measurement),
        "kind": one.kind,
        "message": one.message,
        "failed_at_us": plain.dump_time(one.failed_at),
    }


def row_to_failure(row: Row) -> FailureRecord:
    """Read what `failure_to_row` wrote."""
    return FailureRecord(
        launch=row_to_launch(row),
        kind=row["kind"],
        message=row["message"],
        failed_at=plain.load_time(row["failed_at_us"]),
        measurement=row["measurement"],
    )
