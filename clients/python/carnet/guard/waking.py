"""How another thread wakes code in an event loop without waiting for that loop."""

from collections.abc import Callable

__all__ = ["Soon", "soon"]

Soon = Callable[[Callable[[], object]], None]  # schedules a call in the loop; harmless once the loop is gone


def soon() -> Soon:
    """For the event loop that runs this code: asyncio, or else trio."""
    import asyncio

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return _trio()

    def schedule(call: Callable[[], object]) -> None:
        if not loop.is_closed():
            try:
                loop.call_soon_threadsafe(call)
            except RuntimeError:  # it closed in between
                return

    return schedule


def _trio() -> Soon:
    from importlib import import_module

    lowlevel = import_module("trio.lowlevel")
    token = lowlevel.current_trio_token()

    def schedule(call: Callable[[], object]) -> None:
        try:
            token.run_sync_soon(call)
        except RuntimeError:  # trio.RunFinishedError is one
            return

    return schedule
