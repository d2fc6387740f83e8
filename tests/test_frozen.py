"""Our maker of value classes is held to the standard one: whatever is done with a value, both answer alike."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Mapping
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, is_dataclass, replace
from typing import Any

import pytest

from renderer.frozen import frozen


@frozen
class Ours:
    """A value."""

    name: str
    size: int = 1
    parts: Mapping[str, Any] = field(default_factory=dict)
    hidden: int = field(default=0, repr=False, compare=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Standard:
    """A value."""

    name: str
    size: int = 1
    parts: Mapping[str, Any] = field(default_factory=dict)
    hidden: int = field(default=0, repr=False, compare=False)

    def __str__(self) -> str:
        return self.name


@frozen
class Nothing:
    pass


@frozen
class Also:
    pass


OF_TWO_CLASSES: tuple[object, object] = (Nothing(), Also())


STRANGERS: tuple[object, ...] = ("a", ("a", 1, {}), None)
QUESTIONS: Mapping[str, Callable[[Any], object]] = {
    "repr": lambda made: repr(made(name="a", parts={"b": 1}, hidden=2)).partition("(")[2],
    "a method of its own": lambda made: str(made(name="a")),
    "equal": lambda made: made(name="a", size=2) == made(size=2, name="a"),
    "not equal": lambda made: [made(name="a") == made(name=other) for other in ("b", "A")],
    "left out of comparison": lambda made: made(name="a", hidden=1) == made(name="a", hidden=2),
    "equal to nothing else": lambda made: [made(name="a") == other for other in STRANGERS],
    "hash": lambda made: hash(made(name="a", parts=())) == hash(made(name="a", parts=())),
    "hash of the fields": lambda made: hash(made(name="a", parts=())),
    "a default of its own": lambda made: made(name="a").parts is made(name="a").parts,
    "replace": lambda made: asdict(replace(made(name="a", hidden=3), size=5)),
    "fields": lambda made: [(item.name, item.repr, item.compare, item.kw_only) for item in fields(made)],
    "is a dataclass": lambda made: is_dataclass(made),
    "doc": lambda made: made.__doc__,
    "no dict": lambda made: hasattr(made(name="a"), "__dict__"),
    "copy": lambda made: copy.deepcopy(made(name="a", hidden=3)) == made(name="a"),
    "pickle": lambda made: pickle.loads(pickle.dumps(made(name="a", hidden=3))).hidden,
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_it_answers_as_the_standard_one_does(question: str) -> None:
    assert QUESTIONS[question](Ours) == QUESTIONS[question](Standard)


REFUSED: Mapping[str, tuple[Callable[[Any], object], type[Exception] | tuple[type[Exception], ...]]] = {
    "change": (lambda made: setattr(made(name="a"), "name", "b"), FrozenInstanceError),
    "addition": (lambda made: setattr(made(name="a"), "other", "b"), (FrozenInstanceError, TypeError)),
    "deletion": (lambda made: delattr(made(name="a"), "name"), FrozenInstanceError),
    "a field is missing": (lambda made: made(size=1), TypeError),
    "a field is not known": (lambda made: made(name="a", other=1), TypeError),
    "one is missing and another not known": (lambda made: made(size=1, other=1), TypeError),
    "by position": (lambda made: made("a"), TypeError),
    "hash of what has none": (lambda made: hash(made(name="a")), TypeError),
}


@pytest.mark.parametrize("maker", [Ours, Standard])
@pytest.mark.parametrize("refused", REFUSED)
def test_it_refuses_what_the_standard_one_refuses(refused: str, maker: Any) -> None:
    attempt, error = REFUSED[refused]
    with pytest.raises(error):
        attempt(maker)


def test_values_of_two_classes_differ_even_without_fields() -> None:
    assert Nothing() == Nothing()
    one, other = OF_TWO_CLASSES
    assert one != other
    assert len({Nothing(), Nothing(), copy.copy(Nothing())}) == 1
