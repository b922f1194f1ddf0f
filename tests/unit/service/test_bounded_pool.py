"""Questions that run nothing: a few at a time, and not too many wait."""

import asyncio
import threading

import pytest

from kernelcast.service.bounded_pool import BoundedPool
from kernelcast.service.errors import ApiError


def test_too_many_questions_come_again_later() -> None:
    """Some wait, the next is told when to come again, and all that wait are answered."""

    async def ask() -> tuple[list[int], ApiError]:
        work, gate = BoundedPool(16, "questions"), threading.Event()
        asked = [
            asyncio.create_task(work.run(lambda number=number: (gate.wait(30), number)[1]))
            for number in range(16)
        ]
        await asyncio.sleep(0)
        with pytest.raises(ApiError) as caught:
            await work.run(lambda: -1)
        gate.set()
        answers = await asyncio.gather(*asked)
        assert await work.run(lambda: 7) == 7
        work.close()
        return list(answers), caught.value

    answers, error = asyncio.run(ask())
    assert answers == list(range(16))
    assert error.status == 503
    assert error.retry_after_s
