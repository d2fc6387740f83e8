"""The record of a borrowed field, as `status.borrowed` keeps it. It is written before the field is changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from renderer.model.path import ABSENT, Path, starts_with
from renderer.model.ref import Ref
from renderer.model.rendered import RenderedStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """The value at `path` before it was borrowed: any JSON value, null and empty included, or ABSENT.

    Where parents were missing too, `path` is the topmost of them: returning it means removing it.
    """

    path: Path
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Loan:
    """An original, who took it from which object, and when. Times are RFC 3339; `returned` is None while on loan."""

    phase: str
    step: str
    ref: Ref
    original: Original
    taken: str
    returned: str | None = None

    def to_status(self) -> dict[str, Any]:
        """One item of `status.borrowed`."""
        absent = self.original.value is ABSENT
        parts = {
            "phase": self.phase,
            "step": self.step,
            "apiVersion": self.ref.api_version,
            "kind": self.ref.kind,
            "namespace": self.ref.namespace or None,
            "name": self.ref.name,
            "path": pointer(self.original.path),
            "absent": absent,
            "value": None if absent else self.original.value,
            "taken": self.taken,
            "returned": self.returned,
        }
        return {key: value for key, value in parts.items() if value is not None}

    @classmethod
    def from_status(cls, item: Mapping[str, Any]) -> Loan:
        ref = Ref(
            api_version=item["apiVersion"], kind=item["kind"], namespace=item.get("namespace", ""), name=item["name"]
        )
        value = ABSENT if item["absent"] else item.get("value")
        return cls(
            phase=item["phase"],
            step=item["step"],
            ref=ref,
            original=Original(path=path_of(item["path"]), value=value),
            taken=item["taken"],
            returned=item.get("returned"),
        )


def loan_step(item: RenderedStep) -> str:
    """The step's name in a loan: `Step`, or `Step/node`."""
    return f"{item.step.name}/{item.step.node}" if item.step.node else item.step.name


def record(
    loans: Iterable[Loan], originals: Iterable[Original], *, phase: str, step: str, ref: Ref, taken: str
) -> tuple[Loan, ...]:
    """`loans` with what a step is about to overwrite.

    What is overwritten now is what goes back, so a new original takes the place of the same step's earlier one; an
    original below a parent that this step made is covered by the parent's. A field that needs no write keeps its
    first record: that is what makes a retry harmless.
    """
    kept = tuple(loans)
    for original in originals:
        own = [loan for loan in kept if _on_loan_to(loan, phase, step, ref)]
        if any(_is_below(original.path, loan.original.path) for loan in own):
            continue
        replaced = {id(loan) for loan in own if starts_with(loan.original.path, original.path)}
        new = Loan(phase=phase, step=step, ref=ref, original=original, taken=taken)
        kept = (*(loan for loan in kept if id(loan) not in replaced), new)
    return kept


def settle(loans: Iterable[Loan], settled: Iterable[Loan], returned: str) -> tuple[Loan, ...]:
    """`loans`, those in `settled` marked as returned."""
    over = tuple(settled)
    return tuple(replace(loan, returned=returned) if loan in over else loan for loan in loans)


def on_loan(loans: Iterable[Loan], ref: Ref) -> tuple[Loan, ...]:
    """The fields of an object that are still on loan; once this is empty, our claim on the object may go."""
    return tuple(loan for loan in loans if loan.ref == ref and loan.returned is None)


def pointer(path: Path) -> str:
    """A path as JSON pointer (RFC 6901)."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def path_of(text: str) -> Path:
    """The inverse of `pointer`, for paths through mappings only: no borrowed path leads into a list."""
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:])


def _on_loan_to(loan: Loan, phase: str, step: str, ref: Ref) -> bool:
    return loan.returned is None and (loan.phase, loan.step, loan.ref) == (phase, step, ref)


def _is_below(path: Path, above: Path) -> bool:
    return len(path) > len(above) and starts_with(path, above)
