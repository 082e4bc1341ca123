"""Binds a call to a tool's signature and freezes it: what was checked is what runs.

Defaults are applied, every argument is copied once, the JSON that is decided on is taken from the copy, and the tool
gets the copy. A parameter that is a model is spread: its fields are the arguments. Injected parameters are passed by.
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from carnet.errors import ConfigError
from carnet.guard.annotations import evaluate, form_of, is_injected, is_model, resolved
from carnet.guard.forms import Fields, Form, Model, Plain, Unfit
from carnet.reasons import Reason, Refusal

__all__ = ["Binding", "Frozen", "freeze_json"]

_EMPTY = inspect.Parameter.empty


class Frozen(NamedTuple):  # made once per call: a tuple costs a third of a frozen dataclass
    """One call: `json` is decided on, `args` and `kwargs` are what the tool is called with."""

    json: dict[str, Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __repr__(self) -> str:
        return "Frozen(...)"


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    form: Form | None  # None: injected
    spread: bool
    default: Any
    position: bool  # must be given by position


class Binding:
    """The signature of one tool. Made at decoration; ConfigError says what no argument can be made of."""

    def __init__(self, fn: Callable[..., Any], tool: str, context: Collection[str] = ()) -> None:
        self.tool = tool
        given = _signature(fn, tool)
        unknown = set(context) - given.parameters.keys()
        if unknown:
            raise ConfigError(f"{tool}: context= names {sorted(unknown)}, which the function does not take")
        locals_ = _closure(fn)
        self._parameters = tuple(
            _parameter(fn, tool, item, context, locals_, first=index == 0)
            for index, item in enumerate(given.parameters.values())
        )
        self._names = {parameter.name for parameter in self._parameters if not parameter.position}
        self._positional = sum(item.kind is not inspect.Parameter.KEYWORD_ONLY for item in given.parameters.values())
        self._unclashed()
        self.signature = _evaluated(fn, given, locals_)

    def freeze(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Frozen | Refusal:
        """The frozen call, or why its arguments are none of this tool."""
        if len(args) > self._positional or not kwargs.keys() <= self._names:
            return Refusal(Reason.ARGUMENTS_INVALID, f"{self.tool} was given arguments that it does not take")
        json: dict[str, Any] = {}
        by_position: list[Any] = []
        by_name: dict[str, Any] = {}
        for index, parameter in enumerate(self._parameters):
            found = _value(parameter, index, args, kwargs)
            if found is _EMPTY:
                return Refusal(Reason.ARGUMENTS_INVALID, f"{self.tool} lacks the argument {parameter.name}")
            if parameter.form is not None:
                try:
                    found = parameter.form.freeze(found)
                    read = parameter.form.json(found)
                except Unfit as unfit:
                    return Refusal(Reason.ARGUMENTS_INVALID, f"the argument {parameter.name} {unfit}")
                if parameter.spread:
                    json.update(read)
                else:
                    json[parameter.name] = read
            if parameter.position:
                by_position.append(found)
            else:
                by_name[parameter.name] = found
        return Frozen(json, tuple(by_position), by_name)

    def _unclashed(self) -> None:
        seen: set[str] = set()
        for parameter in self._parameters:
            for name in _argument_names(parameter):
                if name in seen:
                    raise ConfigError(f"{self.tool}: two arguments are named {name} (a model's fields are arguments)")
                seen.add(name)


def freeze_json(args: Mapping[str, Any]) -> Frozen | Refusal:
    """The frozen call of arguments that are JSON already: `fn(**arguments)`."""
    try:
        return _as_keywords(Plain().freeze(dict(args)))
    except Unfit as unfit:
        return Refusal(Reason.ARGUMENTS_INVALID, f"an argument {unfit}")


def _as_keywords(json: dict[str, Any]) -> Frozen:
    return Frozen(json, (), json)


def _value(parameter: _Parameter, index: int, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    if index < len(args):
        return _EMPTY if parameter.name in kwargs and not parameter.position else args[index]
    if not parameter.position and parameter.name in kwargs:
        return kwargs[parameter.name]
    return parameter.default


def _argument_names(parameter: _Parameter) -> tuple[str, ...]:
    if parameter.form is None:
        return ()
    if parameter.spread and isinstance(parameter.form, Model | Fields):
        return tuple(parameter.form.members)
    return (parameter.name,)


def _parameter(
    fn: Callable[..., Any],
    tool: str,
    given: inspect.Parameter,
    context: Collection[str],
    locals_: Mapping[str, Any],
    *,
    first: bool,
) -> _Parameter:
    if given.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        raise ConfigError(f"{tool}: *args and **kwargs would let arguments pass that no rule names")
    position = given.kind is inspect.Parameter.POSITIONAL_ONLY
    injected = _Parameter(given.name, None, False, given.default, position)
    if given.name in context or (first and _is_receiver(fn, given)):
        return injected
    try:
        annotation = evaluate(fn, given, locals_)
    except NameError as missing:
        raise ConfigError(
            f"{tool}: the annotation of {given.name} names {missing.name}, which is not imported when the module runs; "
            "import it outside TYPE_CHECKING, or name the parameter in context="
        ) from None
    if is_injected(annotation, given.default):
        return injected
    default = given.default.default if _is_field(given.default) else given.default
    return _Parameter(given.name, form_of(annotation, f"{tool}: {given.name}"), is_model(annotation), default, position)


def _is_receiver(fn: Callable[..., Any], first: inspect.Parameter) -> bool:
    """Whether the first parameter is the object or class of a method. A function outside a class that names an argument
    `cls` takes it from its caller like any other."""
    within = str(getattr(fn, "__qualname__", "")).rpartition(".")[0]
    return first.name in ("self", "cls") and within != "" and not within.endswith("<locals>")


def _signature(fn: Callable[..., Any], tool: str) -> inspect.Signature:
    try:
        return inspect.signature(fn)
    except (TypeError, ValueError):
        raise ConfigError(
            f"{tool}: {type(fn).__name__} has no signature that could be read; a classmethod is guarded below "
            "@classmethod, where it is a function"
        ) from None


def _is_field(default: Any) -> bool:
    """FastAPI's `Query(5)` and the like as a default: the framework passes the value, never the marker itself."""
    return type(default).__module__ == "fastapi.params"


def _closure(fn: Callable[..., Any]) -> dict[str, Any]:
    inner = inspect.unwrap(getattr(fn, "__func__", fn))
    names = getattr(getattr(inner, "__code__", None), "co_freevars", ())
    found: dict[str, Any] = {}
    for name, cell in zip(names, getattr(inner, "__closure__", None) or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # the variable has no value yet
            continue
    return found


def _evaluated(fn: Callable[..., Any], given: inspect.Signature, locals_: Mapping[str, Any]) -> inspect.Signature:
    """The signature with real annotations: frameworks would look string ones up in the wrapper's module."""

    def of(annotation: Any) -> Any:
        if annotation is _EMPTY:
            return annotation
        try:
            return resolved(annotation, fn, locals_)
        except NameError:
            return _EMPTY

    return given.replace(
        parameters=[item.replace(annotation=of(item.annotation)) for item in given.parameters.values()],
        return_annotation=of(given.return_annotation),
    )
