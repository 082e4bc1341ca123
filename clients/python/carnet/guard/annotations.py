"""From annotations to forms, and which parameters a framework injects. Frameworks are known by name, never imported."""

import dataclasses
import enum
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

from carnet.errors import ConfigError
from carnet.guard.forms import (
    PLAIN,
    TEXTUAL,
    Choice,
    Exact,
    Fields,
    Form,
    Keyed,
    Listed,
    Model,
    Number,
    Row,
    Union,
    Words,
)

__all__ = ["evaluate", "form_of", "is_injected", "is_model", "resolved"]

_SCALARS: dict[Any, Form] = {kind: Exact(kind) for kind in (str, int, float, bool, type(None))}
_SCALARS[None] = _SCALARS[type(None)]
# Types and markers by which frameworks inject parameters that are no arguments of the tool.
_INJECTED = {
    ("fastapi", "Depends"),
    ("fastapi", "Security"),
    ("fastapi", "SecurityScopes"),
    ("fastapi", "BackgroundTasks"),
    ("starlette", "Request"),
    ("starlette", "HTTPConnection"),
    ("starlette", "Response"),
    ("starlette", "WebSocket"),
    ("starlette", "BackgroundTasks"),
    ("mcp", "Context"),
    ("mcp", "Resolve"),
    ("fastmcp", "Context"),
    ("langchain_core", "InjectedToolArg"),
    ("langchain_core", "InjectedToolCallId"),
    ("langchain_core", "RunnableConfig"),
    ("langgraph", "InjectedState"),
    ("langgraph", "InjectedStore"),
    ("langgraph", "ToolRuntime"),
}


def evaluate(fn: Callable[..., Any], parameter: inspect.Parameter, localns: Mapping[str, Any]) -> Any:
    """The annotation itself, also where it was written as a string. NameError when a name of it can't be found."""
    return resolved(parameter.annotation, fn, localns)


def resolved(annotation: Any, fn: Callable[..., Any], localns: Mapping[str, Any]) -> Any:
    if annotation is inspect.Parameter.empty:
        return Any
    holder = type("Holder", (), {"__annotations__": {"it": annotation}})
    inner = inspect.unwrap(getattr(fn, "__func__", fn))
    return get_type_hints(holder, getattr(inner, "__globals__", {}), dict(localns), include_extras=True)["it"]


def is_injected(annotation: Any, default: Any) -> bool:
    """Whether a framework fills the parameter in: it is then no argument of the tool."""
    if _named(type(default)):
        return True
    if get_origin(annotation) is Annotated:
        inner, *extras = get_args(annotation)
        marked = any(_named(extra if isinstance(extra, type) else type(extra)) for extra in extras)
        return marked or is_injected(inner, inspect.Parameter.empty)
    if get_origin(annotation) in (typing.Union, types.UnionType):
        return any(is_injected(member, inspect.Parameter.empty) for member in get_args(annotation))
    origin = get_origin(annotation) or annotation
    return isinstance(origin, type) and _named(origin)


def _named(kind: type) -> bool:
    return any((base.__module__.partition(".")[0], base.__name__) in _INJECTED for base in kind.__mro__)


def is_model(annotation: Any) -> bool:
    """Whether a parameter of this type is spread: its fields are then the arguments."""
    bare = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    return isinstance(bare, type) and (dataclasses.is_dataclass(bare) or is_typeddict(bare) or _is_pydantic(bare))


def form_of(annotation: Any, where: str) -> Form:
    """The form of an annotation. ConfigError, naming `where`, when it has none."""
    return _form(annotation, where, ())


def _form(annotation: Any, where: str, inside: tuple[type, ...]) -> Form:
    if annotation is Any or annotation is object:
        return PLAIN
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if type(annotation).__name__ == "TypeAliasType":  # a `type X = ...` statement, which 3.11 does not have
        return _form(annotation.__value__, where, inside)
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _form(args[0], where, inside)
    if origin is Literal:
        if all(type(value) in (str, int, bool, type(None)) for value in args):
            return Choice(args)
        raise _formless(annotation, where)
    if origin in (typing.Union, types.UnionType):
        return Union([_form(member, where, inside) for member in args])
    made = _container(origin or annotation, args, where, inside)
    return made or _named_type(annotation, where, inside)


def _container(kind: Any, args: tuple[Any, ...], where: str, inside: tuple[type, ...]) -> Form | None:
    if kind in (list, typing.List):  # noqa: UP006
        return Listed(_form(args[0], where, inside) if args else PLAIN, list)
    if kind is tuple:
        if not args or (len(args) == 2 and args[1] is Ellipsis):
            return Listed(_form(args[0], where, inside) if args else PLAIN, tuple)
        return Row([_form(item, where, inside) for item in args])
    if kind is dict:
        if args and args[0] is not str:
            raise ConfigError(f"{where}: a dict with keys other than str has no JSON form")
        return Keyed(_form(args[1], where, inside) if args else PLAIN)
    if isinstance(kind, type) and kind.__module__ == "collections.abc":
        if kind.__name__ in ("Sequence", "Collection", "Iterable", "MutableSequence"):
            return Listed(_form(args[0], where, inside) if args else PLAIN, list)
        if kind.__name__ in ("Mapping", "MutableMapping") and (not args or args[0] is str):
            return Keyed(_form(args[1], where, inside) if args else PLAIN)
    return None


def _named_type(annotation: Any, where: str, inside: tuple[type, ...]) -> Form:
    if not isinstance(annotation, type):
        raise _formless(annotation, where)
    if annotation in TEXTUAL:
        return TEXTUAL[annotation]
    if annotation is Decimal:
        return Number()
    if issubclass(annotation, enum.Enum):
        if all(isinstance(member.value, str) for member in annotation):
            return Words(annotation)
        raise ConfigError(f"{where}: the values of {annotation.__name__} are not all strings")
    if annotation in inside:
        raise ConfigError(f"{where}: {annotation.__name__} contains itself; such a type has no bounded JSON form")
    return _model(annotation, where, (*inside, annotation))


def _model(kind: type, where: str, inside: tuple[type, ...]) -> Form:
    if is_typeddict(kind):
        hints = get_type_hints(kind)
        members = {name: _form(hint, f"{where}.{name}", inside) for name, hint in hints.items()}
        return Fields(members, frozenset(kind.__required_keys__), kind.__name__)  # type: ignore[attr-defined]
    if dataclasses.is_dataclass(kind):
        _closed(kind, getattr(kind, "__pydantic_config__", None), where)
        hints = get_type_hints(kind, include_extras=True)
        if any(isinstance(hint, dataclasses.InitVar) for hint in hints.values()):
            raise ConfigError(f"{where}: {kind.__name__} takes an InitVar, which is no field: no rule could see it")
        names = [field.name for field in dataclasses.fields(kind)]
        return Model(kind, {name: _form(hints[name], f"{where}.{name}", inside) for name in names})
    if _is_pydantic(kind):
        _closed(kind, getattr(kind, "model_config", None), where)
        fields: Mapping[str, Any] = getattr(kind, "model_fields")  # noqa: B009
        return Model(kind, {name: _form(field.annotation, f"{where}.{name}", inside) for name, field in fields.items()})
    raise _formless(kind, where)


def _closed(kind: type, config: Mapping[str, Any] | None, where: str) -> None:
    if config is not None and config.get("extra") == "allow":
        raise ConfigError(f"{where}: {kind.__name__} takes fields that it does not name; no rule could see them")


def _is_pydantic(kind: type) -> bool:
    return any(base.__module__.startswith("pydantic.") and base.__name__ == "BaseModel" for base in kind.__mro__)


def _formless(annotation: Any, where: str) -> ConfigError:
    shown = getattr(annotation, "__name__", None) or str(annotation)
    return ConfigError(f"{where}: {shown} has no JSON form; if a framework injects it, name it in context=")
