"""Makes the classes of values: what `@dataclass(frozen=True, slots=True, kw_only=True)` makes, in a fifth of its time.

A command defines some sixty such classes before it does anything. The standard decorator writes six methods for each
as text and compiles them; here fields and slots are still its work, and the methods are closures. Instances behave
alike: `replace`, `asdict`, `fields`, `field` and `match` know them, and type checkers see dataclasses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, NoReturn, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """A class whose instances cannot be changed and are equal if their fields are. Methods that it defines itself stay.

    What is not a field, or lacks one, is a `TypeError` when an instance is made, as with any function.
    """
    cls.__doc__ = cls.__doc__ or cls.__name__  # else the standard decorator spells out a signature, which is dear
    made = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=True)(cls)
    declared = fields(made)  # type: ignore[arg-type]
    compared = _getter([item.name for item in declared if item.compare])
    methods: dict[str, Callable[..., Any]] = {
        "__init__": _init(made, declared),
        "__repr__": _repr([item.name for item in declared if item.repr]),
        "__eq__": _eq(compared),
        "__hash__": lambda self: hash(compared(self)),
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__getstate__": _getstate,
        "__setstate__": _setstate,
    }
    for name, method in methods.items():
        if name not in vars(made):
            setattr(made, name, method)
    return made


def _init(made: type, declared: Iterable[Field[Any]]) -> Callable[..., None]:
    slots = [(item.name, getattr(made, item.name).__set__) for item in declared]
    names = frozenset(name for name, _ in slots)
    defaults = {item.name: item.default for item in declared if item.default is not MISSING}
    factories = {item.name: item.default_factory for item in declared if item.default_factory is not MISSING}

    def init(self: Any, /, **given: Any) -> None:
        if given.keys() != names:
            given = defaults | {name: make() for name, make in factories.items() if name not in given} | given
            if wrong := given.keys() ^ names:
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


def _refuse(self: object, name: str, value: object = None) -> NoReturn:
    raise FrozenInstanceError(f"cannot change field {name!r}")


def _getstate(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, item.name) for item in fields(self))


def _setstate(self: Any, state: tuple[Any, ...]) -> None:
    for item, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, item.name, value)
