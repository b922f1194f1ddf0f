"""Problems as callers send them: checked, named by a digest, kept for later requests."""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from cachetools import FIFOCache

from kernelcast.launches.problem_file.reader import read_inline_problem
from kernelcast.records.errors import InputError
from kernelcast.records.problem import Problem
from kernelcast.service.errors import ApiError
from kernelcast.service.guard import check_content, check_problem
from kernelcast.service.settings import Limits
from kernelcast.service_state import ServiceState


class ProblemCache:
    """Problems by their digests: a process reads each once, the database has them all."""

    def __init__(self, state: ServiceState, limits: Limits) -> None:
        self._state = state
        self._limits = limits
        self._known: FIFOCache[str, Problem] = FIFOCache(4096)

    async def take(self, content: Mapping[str, Any]) -> tuple[str, Problem]:
        """Take a problem as it came."""
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(text.encode()).hexdigest()
        known = self._known.get(digest)
        if known is not None:
            return digest, known
        problem = self._read(content)
        await asyncio.to_thread(self._state.problems.add, digest, text)
        self._known[digest] = problem
        return digest, problem

    async def find(self, digest: str) -> Problem:
        """Find a problem that was sent before."""
        known = self._known.get(digest)
        if known is None:
            known = self._known[digest] = self._read(await self.read(digest))
        return known

    async def read(self, digest: str) -> Mapping[str, Any]:
        """Read what was sent as a problem."""
        text = await asyncio.to_thread(self._state.problems.find, digest)
        if text is None:
            raise ApiError(
                HTTPStatus.NOT_FOUND,
                "unknown_problem",
                f"there is no problem {digest!r}; send it as `problem` once",
            )
        found: Mapping[str, Any] = json.loads(text)
        return found

    def _read(self, content: Mapping[str, Any]) -> Problem:
        given = dict(content)
        name = given.pop("name", None)
        check_content(given, self._limits)
        try:
            problem = read_inline_problem(given, name=name)
        except (ValueError, OverflowError, RecursionError) as error:
            msg = f"problem: holds what cannot be read as a number or text ({error})"
            raise InputError(msg) from error
        check_problem(problem, self._limits)
        return problem
