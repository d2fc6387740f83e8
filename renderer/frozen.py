"""Makes the classes of values: what `@dataclass(frozen=True, slots=True, kw_only=True)` makes, in a tenth of its time.

A command defines some sixty such classes before it does anything. The standard decorator writes six methods for each
as text, compiles them and makes the class twice; here the methods are closures, and the standard fields are made when
somebody asks for them. Instances behave alike: `replace`, `asdict`, `fields`, `field` and `match` know them, and type
checkers see dataclasses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field
from inspect import get_annotations
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")

_FIELDS = "__dataclass_fields__"
_OF_THE_FIRST = ("__dict__", "__weakref__")
"""The attribute of a class that was made without slots."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """A class whose instances cannot be changed and are equal if their fields are. Methods that it defines itself stay.

    What is not a field, or lacks one, is a `TypeError` when an instance is made, as with any function. Base classes
    with fields of their own are not supported.
    """
    names = tuple(get_annotations(cls))
    given = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
    kept = {key: item for key, item in cls.__dict__.items() if key not in given and key not in _OF_THE_FIRST}
    compared = _getter([name for name in names if not isinstance(given.get(name), Field) or given[name].compare])
    shown = [name for name in names if not isinstance(given.get(name), Field) or given[name].repr]
    body: dict[str, Any] = {
        "__repr__": _repr(shown),
        "__eq__": _eq(compared),
        "__hash__": lambda self: hash(compared(self)),
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__getstate__": _getstate,
        "__setstate__": _setstate,
        **kept,
        "__slots__": names,
        "__match_args__": (),
        _FIELDS: _Fields(given),
    }
    make: Callable[..., type[T]] = type(cls)
    made = make(cls.__name__, cls.__bases__, body)
    if "__init__" not in kept:
        type.__setattr__(made, "__init__", _init(made, names, given))
    return made


def is_frozen(value: object) -> bool:
    """True for an instance of such a class, whose fields are its slots."""
    return vars(type(value)).get("__setattr__") is _refuse


class _Fields:
    """Stands for the standard fields until somebody asks for them."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given

    def __get__(self, instance: object, owner: type) -> dict[str, Field[Any]]:
        about = {"__annotations__": owner.__annotations__, "__module__": owner.__module__}
        # With a text of its own, since without any the standard decorator spells out a signature, which is dear.
        standard: type = type(owner.__name__, (), {**about, "__doc__": owner.__name__, **self._given})
        found: dict[str, Field[Any]] = getattr(
            dataclass(init=False, repr=False, eq=False, kw_only=True)(standard), _FIELDS
        )
        setattr(owner, _FIELDS, found)
        return found


def _init(made: type, names: Sequence[str], given: Mapping[str, Any]) -> Callable[..., None]:
    slots = [(name, getattr(made, name).__set__) for name in names]
    known = frozenset(names)
    marked = {name: item for name, item in given.items() if isinstance(item, Field)}
    defaults = {name: item for name, item in given.items() if name not in marked}
    defaults |= {name: item.default for name, item in marked.items() if item.default is not MISSING}
    factories = {name: item.default_factory for name, item in marked.items() if item.default_factory is not MISSING}

    def init(self: Any, /, **given: Any) -> None:
        if given.keys() != known:
            given = defaults | {name: make() for name, make in factories.items() if name not in given} | given
            if wrong := given.keys() ^ known:
                raise TypeError(f"{made.__qualname__} lacks or does not know {', '.join(sorted(wrong))}")
        for name, put in slots:
            put(self, given[name])

    return init


def _repr(names: list[str]) -> Callable[[Any], str]:
    @recursive_repr()
    def text(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return text


def _eq(compared: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], bool]:
    def equal(self: Any, other: object) -> bool:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _getter(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """The fields of these names as a tuple; `attrgetter` makes none of less than two."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)


def _refuse(_self: object, name: str, _value: object = None) -> NoReturn:
    raise FrozenInstanceError(f"cannot change field {name!r}")


def _getstate(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, name) for name in self.__slots__)


def _setstate(self: Any, state: tuple[Any, ...]) -> None:
    for name, value in zip(self.__slots__, state, strict=True):
        object.__setattr__(self, name, value)
