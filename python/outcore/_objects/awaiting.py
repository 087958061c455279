"""Requests awaited from a thread that has no event loop, or one of its own: signals end them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from threading import Event, Thread
from typing import TypeVar

_Item = TypeVar("_Item")
_AT_ONCE = 8
_GRACE_SECONDS = 1.0  # in which requests end that are cancelled


def await_each(request: Callable[[_Item], Awaitable[object]], items: Iterable[_Item]) -> None:
    """Makes a request for each item, eight at once. Raises the first failure, and ends the others then.

    An exception in this thread, as that of Ctrl-C, cancels the requests that are under way.
    """
    remaining = iter(items)
    loop = asyncio.new_event_loop()
    ended = Event()
    failures: list[BaseException] = []

    async def one_by_one() -> None:
        for item in remaining:
            await request(item)

    async def all_of_them() -> None:
        tasks = [asyncio.ensure_future(one_by_one()) for _ in range(_AT_ONCE)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def work() -> None:
        try:
            loop.run_until_complete(everything)
        except BaseException as error:
            failures.append(error)
        finally:
            loop.close()
            ended.set()

    everything = loop.create_task(all_of_them())
    Thread(target=work, name="outcore-requests", daemon=True).start()
    try:
        ended.wait()
    except BaseException:
        if not ended.is_set():
            loop.call_soon_threadsafe(everything.cancel)
            ended.wait(_GRACE_SECONDS)
        raise
    if failures:
        raise failures[0]


__all__ = ["await_each"]
