"""`Guard`: what a tool's owner holds. It wraps tools, and answers for what passes."""

import functools
import inspect
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Collection, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast, overload

from carnet.errors import ConfigError, refused
from carnet.guard.binding import Binding, Frozen, freeze_json
from carnet.guard.setup import Setup, Works, started
from carnet.reasons import Refusal
from carnet.task import TOOL_NAME
from carnet.wire.credential import Credential

if TYPE_CHECKING:
    import httpx2

    from carnet_policy import Decision

__all__ = ["Guard", "owner_of"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
_MARK = "__carnet_guard__"  # on a guarded function: (its guard, the tool's name)
_START = 2.0  # seconds for which the first call after a start waits for the guard to get ready
_ADAPTERS = {"fastapi": "carnet.adapters.fastapi"}


class Guard:
    """The guard of one host. Made at import time without reading anything; it starts at first use.

    host: needed where the guard has no client of its own. max_wait: seconds for which a call waits for a person's
    answer; None = 50 in process and 0 behind an HTTP server. journal: folder of the local lane's records; without one
    every call is decided by the broker. Refuses everything until policy, keys and revocations are loaded.
    """

    def __init__(
        self,
        host: str | None = None,
        *,
        url: str | None = None,
        credential: Credential | None = None,
        journal: str | Path | None = None,
        max_wait: float | None = None,
        transport: "httpx2.BaseTransport | None" = None,
    ) -> None:
        self._setup = Setup(
            host=host,
            url=url,
            credential=credential,
            journal=Path(journal) if journal is not None else None,
            max_wait=max_wait,
            transport=transport,
        )
        self._lock = threading.RLock()
        self._works: Works | None = None
        self._tools: dict[str, Callable[..., Any]] = {}
        _GUARDS.add(self)

    @overload
    def tool(self, fn: Callable[P, R], *, name: str | None = None, context: Collection[str] = ()) -> Callable[P, R]: ...

    @overload
    def tool(
        self, fn: None = None, *, name: str | None = None, context: Collection[str] = ()
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...

    def tool(
        self, fn: Callable[P, R] | None = None, *, name: str | None = None, context: Collection[str] = ()
    ) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
        """Own a function: decorator, with or without arguments. The signature stays, sync stays sync.

        name: the tool's, if not the function's. context: parameters that a framework injects; they are no arguments.
        ConfigError for a signature whose arguments have no JSON form. Calls raise Refused and its kin.
        """
        if fn is None:
            return lambda given: self._own(given, name, context)
        return self._own(fn, name, context)

    def wrap(self, tool: T) -> T:
        """Own one tool object of a framework, or a function. ConfigError for a kind that this release does not know."""
        given: Any = tool
        if inspect.isroutine(given) or isinstance(given, functools.partial):
            return cast(T, self._own(given, None, ()))
        raise ConfigError(f"{type(tool).__module__}.{type(tool).__name__}: wrapping this kind is not in this release")

    def install(self, app_or_tools: T, *, unguarded: Collection[str] = ()) -> T:
        """Guard a whole application (FastAPI: before its first route) or list of tools.

        unguarded: full path templates, or names of tools, that stay open."""
        if isinstance(app_or_tools, list):
            return cast(T, [tool if _name(tool) in unguarded else self.wrap(tool) for tool in app_or_tools])
        for base in type(app_or_tools).__mro__:
            adapter = _ADAPTERS.get(base.__module__.partition(".")[0])
            if adapter is not None:
                import_module(adapter).install(self, app_or_tools, unguarded)
                return app_or_tools
        kind = type(app_or_tools)
        raise ConfigError(f"{kind.__module__}.{kind.__name__}: installing into this kind is not in this release")

    def call(self, tool: str, args: Mapping[str, Any], fn: Callable[..., R]) -> R:
        """Guard one call of `fn(**args)` where there is no signature to own; args are JSON values."""
        works = self.started()
        return works.dispatch.run(tool, _fitting(works, tool, freeze_json(args)), fn)

    async def acall(self, tool: str, args: Mapping[str, Any], fn: Callable[..., Awaitable[R]]) -> R:
        """As `call`, for an async `fn`."""
        works = await self.astarted()
        return await works.dispatch.arun(tool, _fitting(works, tool, freeze_json(args)), fn)

    def preview(self, tool: str, args: Mapping[str, Any]) -> "Decision":
        """What the policy would answer to this call of the current child; nothing is reserved, recorded or asked."""
        return self.started().dispatch.preview(tool, _unrefused(freeze_json(args)))

    async def apreview(self, tool: str, args: Mapping[str, Any]) -> "Decision":
        """As `preview`, without blocking the event loop."""
        import anyio

        return await anyio.to_thread.run_sync(self.preview, tool, args)

    def ready(self) -> bool:
        """Whether the guard can decide now. Starts it if need be; does not wait."""
        return self._begun().state.lacking(1) is None

    def close(self) -> None:
        """End threads, ship records, close connections. The guard starts again when it is used again."""
        with self._lock:
            works, self._works = self._works, None
        if works is not None:
            works.stop()

    def __enter__(self) -> "Guard":
        self.started()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Guard({self._setup.host!r}, tools={sorted(self._tools)})"

    @property
    def tools(self) -> frozenset[str]:
        """The names of the tools that this guard owns."""
        return frozenset(self._tools)

    def started(self) -> Works:
        """The running parts, once they are ready or 2 s are over: a call then is refused with the reason why.

        ConfigError, at the start, for a set-up that the broker shows to be wrong."""
        begun = self._works is not None
        works = self._begun()
        if not begun and not works.speaks_for_child:
            state = works.state
            state.await_change(lambda: state.lacking(1) is None or state.fault is not None, _START)
            if state.fault is not None:
                self.close()
                raise ConfigError(str(state.fault))
        return works

    def ship(self) -> None:
        """Bring what is recorded to the broker now instead of within half a second."""
        if self._works is not None:
            self._works.upkeep.once()

    def time(self) -> int:
        """The broker's Unix time as the guard last heard it; 0 before."""
        return self._works.state.now() if self._works is not None else 0

    def hears(self) -> bool:
        """Whether the guard is following a broker."""
        return self._works is not None and self._works.state.book is not None

    def placed(self, setup: Setup) -> Setup:
        """Give the guard other surroundings (a test's broker and clock); what the setup lacks stays. The one before."""
        self.close()
        before, self._setup = self._setup, setup
        return before

    @property
    def setup(self) -> Setup:
        """What the guard was made with."""
        return self._setup

    def owned(self, fn: object) -> str | None:
        """The name of the tool that this very function is, or None. A wrapper round it is another function."""
        owner = owner_of(fn)
        return owner[1] if owner is not None and self._tools.get(owner[1]) is fn else None

    async def astarted(self) -> Works:
        """As `started`, without blocking the event loop."""
        if self._works is not None:
            return self._works
        import anyio

        return await anyio.to_thread.run_sync(self.started)

    def _begun(self) -> Works:
        works = self._works
        if works is None:
            with self._lock:
                if self._works is None:
                    self._works = started(self._setup)
                works = self._works
        return works

    def _own(self, fn: Callable[P, R], name: str | None, context: Collection[str]) -> Callable[P, R]:
        owner = owner_of(fn)
        if owner is not None:
            if owner[0] is not self:
                raise ConfigError(f"{owner[1]} has another guard already; a function is guarded once")
            if name not in (None, owner[1]):
                raise ConfigError(
                    f"this is the tool {owner[1]} already, or looks like it (functools.wraps copies the mark): "
                    f"it can't be guarded as {name} too"
                )
            return fn
        tool = name or _name(fn)
        if TOOL_NAME.fullmatch(tool) is None:
            raise ConfigError(f'{tool!r} is no tool name: 1 to 128 printable ASCII characters without space, " and \\')
        if tool in self._tools:
            raise ConfigError(f"two functions are named {tool}: give one of them name=")
        if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
            raise ConfigError(f"{tool}: a generator runs after its call returned, so no guard could answer for it")
        binding = Binding(fn, tool, context)
        guarded = self._async(fn, binding) if _is_async(fn) else self._sync(fn, binding)
        self._tools[tool] = guarded
        return cast(Callable[P, R], _dressed(guarded, fn, binding, self))

    def _sync(self, fn: Callable[..., Any], binding: Binding) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            frozen = binding.freeze(args, kwargs)
            works = self._works or self.started()
            return works.dispatch.run(binding.tool, _fitting(works, binding.tool, frozen), fn)

        return guarded

    def _async(self, fn: Callable[..., Any], binding: Binding) -> Callable[..., Any]:
        async def guarded(*args: Any, **kwargs: Any) -> Any:
            frozen = binding.freeze(args, kwargs)
            works = self._works or await self.astarted()
            return await works.dispatch.arun(binding.tool, _fitting(works, binding.tool, frozen), fn)

        return guarded

    def _forked(self) -> None:
        self._lock = threading.RLock()
        works, self._works = self._works, None
        if works is not None:
            works.forked()


def owner_of(fn: Any) -> "tuple[Guard, str] | None":
    """(guard, tool) of a guarded function, or None."""
    found = getattr(fn, _MARK, None)
    return found if isinstance(found, tuple) else None


def _dressed(guarded: Callable[..., Any], fn: Callable[..., Any], binding: Binding, guard: Guard) -> Callable[..., Any]:
    """The wrapper, looking like the function, but for `__wrapped__`: that would hand out the bare callable."""
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
        if hasattr(fn, attribute):
            setattr(guarded, attribute, getattr(fn, attribute))
    signature = binding.signature
    hints = {item.name: item.annotation for item in signature.parameters.values() if item.annotation is not item.empty}
    if signature.return_annotation is not signature.empty:
        hints["return"] = signature.return_annotation
    guarded.__annotations__ = hints
    setattr(guarded, "__signature__", signature)  # noqa: B010
    setattr(guarded, _MARK, (guard, binding.tool))
    return guarded


def _unrefused(frozen: Frozen | Refusal) -> Frozen:
    if isinstance(frozen, Refusal):
        raise refused(frozen)
    return frozen


def _fitting(works: Works, tool: str, frozen: Frozen | Refusal) -> Frozen:
    if isinstance(frozen, Refusal):
        works.dispatch.misfit(tool, frozen)
    return _unrefused(frozen)


def _name(fn: Any) -> str:
    inner = fn.func if isinstance(fn, functools.partial) else fn
    return str(getattr(inner, "__name__", type(inner).__name__))


def _is_async(fn: Any) -> bool:
    inner = fn.func if isinstance(fn, functools.partial) else fn
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(getattr(inner, "__call__", None))  # noqa: B004


# After a fork the child has none of the threads, and must not write to the parent's journal or connections.
_GUARDS: "weakref.WeakSet[Guard]" = weakref.WeakSet()


def _after_fork() -> None:
    for guard in list(_GUARDS):
        guard._forked()


os.register_at_fork(after_in_child=_after_fork)
