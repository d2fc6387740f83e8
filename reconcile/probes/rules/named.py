"""Named objects: whether they exist, and if not, which name was probably meant."""

from __future__ import annotations

from collections.abc import Sequence

from reconcile.probes.look import Group, ReadFailure
from reconcile.probes.rules.call import RuleCall
from reconcile.probes.verdict import Verdict, failed, passed, together, unread, waiting
from renderer.model.ref import Ref, ref_of
from renderer.names import is_subdomain
from renderer.suggest import closest

_LISTED = 5  # names of others that a message lists


def holds(call: RuleCall) -> Verdict:
    """An expression of the check has decided; it holds unless it is an empty text, false or None."""
    if call.text("value").lower() in ("", "false", "none"):
        return waiting(call.text("otherwise"))
    return passed(call.text("says"))


def found(call: RuleCall) -> Verdict:
    """One verdict a name. Names are given one a line and taken literally: one with a comma or a space in it is of no
    object, which is known without looking. Objects of other namespaces are looked at for what to suggest."""
    expected = [Ref(name=name, **_place(call)) for name in call.text("names").split("\n") if name]
    there = call.look.list(Group(api_version=call.text("apiVersion"), kind=call.text("kind")))
    if isinstance(there, ReadFailure):
        impossible = [ref for ref in expected if not is_subdomain(ref.name)]
        verdicts = [failed(f"{ref} cannot exist: no object can have that name", ref) for ref in impossible]
        return together(verdicts, "; ") if verdicts else unread(f"objects of kind {call.text('kind')}", there)
    if not expected:
        return passed(f"no {call.text('kind')} is named")
    return together([named(ref, [ref_of(body) for body in there]) for ref in expected], "; ")


def named(expected: Ref, there: Sequence[Ref]) -> Verdict:
    if expected in there:
        return passed(f"{expected} exists")
    return failed(f"{expected} does not exist{_hint(expected, there)}", expected)


def names_in(text: str) -> tuple[str, ...]:
    """The names of a text that somebody has written down with commas."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


def _place(call: RuleCall) -> dict[str, str]:
    return {
        "api_version": call.text("apiVersion"),
        "kind": call.text("kind"),
        "namespace": call.text("namespace"),
    }


def _hint(expected: Ref, there: Sequence[Ref]) -> str:
    spaces = sorted(ref.namespace for ref in there if ref.name == expected.name and ref.namespace != expected.namespace)
    if spaces:
        return f"; there is one in namespace {' and in namespace '.join(spaces)}"
    names = sorted({ref.name for ref in there if ref.namespace == expected.namespace})
    meant = closest(expected.name, names)
    if meant:
        return f"; did you mean {meant}?"
    if not names:
        return "; none exists"
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    are = "is" if len(names) == 1 else "are"
    return f"; there {are} {', '.join(names[:_LISTED])}{more}"
