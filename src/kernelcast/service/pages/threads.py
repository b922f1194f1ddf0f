"""Threads for what pages work out: reading, resampling, drawing.

They are few and their own. The API's short looks at the database go through the event loop's
threads, and must never wait behind pictures.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_THREADS: Final = ThreadPoolExecutor(2, thread_name_prefix="pages")


async def run_in_thread(function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Call a function that takes its time."""
    call = partial(function, *args, **options)
    return await asyncio.get_running_loop().run_in_executor(_THREADS, call)
