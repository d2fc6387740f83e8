"""Carries out what was decided about manifests and loans: one write each, or none. It decides and records nothing.

Owned objects go by server-side apply, never forced. Borrowed fields go by patch, as `reconcile.borrow` has planned.
Whatever the cluster answers about one object is a result; that it is away, or does not know us, is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from reconcile.act.applied import REFUSALS, Applied, ApplyResult, refused
from reconcile.act.belonging import Plan, is_controlled_by, owned_by, refusal_of
from reconcile.borrow.claim import release_of
from reconcile.borrow.fields import Patch, patch_of
from reconcile.cluster.errors import Conflict, Immutable, Invalid
from reconcile.cluster.protocol import Answer, Cluster
from reconcile.diff.field_changes import unmet
from reconcile.objects import deletion_timestamp, is_applied_by_us
from reconcile.schemas import Schemas
from renderer.catalog.kinds import Kinds
from renderer.digest import short_digest
from renderer.errors import Problem
from renderer.model.manifest_spec import Owned
from renderer.model.path import look_up, path_name
from renderer.model.ref import Body, Kind, Ref
from renderer.model.rendered import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectWriter:
    """Writes for one plan. With `dry_run` the cluster is asked the same and changes nothing."""

    cluster: Cluster
    kinds: Kinds
    schemas: Schemas
    plan: Plan
    dry_run: bool = False

    def own(self, manifest: Manifest, live: Body | None, *, recorded: str | None = None) -> Applied:
        """Creates or changes an object of ours; `live` is the object as it was read, None if it does not exist.

        `recorded` is the digest that the step's record has for the object, once it says that the object was made.
        Hash first: if it is the manifest's, nothing is asked or written, except for a maintained object that is gone or
        has drifted. Without a record a dry run tells whether there is anything to write, since a field that the
        manifest has no more cannot be seen by comparing.
        """
        reason = _why_not(self.plan, manifest, live, recorded)
        if reason is not None:
            return reason
        known = recorded is not None and short_digest(recorded) == short_digest(manifest.digest)
        return _tried(manifest.ref, manifest.file, lambda: self._own(manifest, live, known=known))

    def take(self, manifest: Manifest, patch: Patch) -> Applied:
        """Borrows fields, as `plan_take` has planned. Its originals must have been recorded before."""

        def act() -> Applied:
            answer = self._send(self._kind(manifest.ref), manifest.ref, patch)
            return _done(manifest.ref, manifest.file, ApplyResult.TAKEN, answer)

        return _unresolved(manifest) or _tried(manifest.ref, manifest.file, act)

    def write_return(self, ref: Ref, live: Body | None, patch: Patch | None, *, last: bool, file: str = "") -> Applied:
        """Puts originals back, as `plan_return` has planned.

        `last` says that nothing of the object is on loan then; our claim on it goes as well.
        """
        if live is None:
            return Applied(ref=ref, file=file, outcome=ApplyResult.UNCHANGED, because=f"{ref} is gone")
        standing = Answer(body=live)

        def act() -> Applied:
            returned = self._send(self._kind(ref), ref, patch) if patch else standing
            released = self._release(ref, returned) if last and not self.dry_run else returned
            outcome = ApplyResult.UNCHANGED if released is standing else ApplyResult.RETURNED
            return _done(ref, file, outcome, released)

        return _tried(ref, file, act)

    def _own(self, manifest: Manifest, live: Body | None, *, known: bool) -> Applied:
        kind, body = self._kind(manifest.ref), owned_by(self.plan, manifest)
        done = partial(_done, manifest.ref, manifest.file)
        if live is None:
            return done(ApplyResult.CREATED, self.cluster.apply(kind, body, dry_run=self.dry_run))
        is_ours = is_controlled_by(self.plan, live)
        if known and is_ours and not self._has_drifted(manifest, live):
            return Applied(ref=manifest.ref, file=manifest.file, outcome=ApplyResult.UNCHANGED, body=live)
        # With the uid, an object that is gone by now is not made a second time, and its successor is left alone.
        body["metadata"]["uid"] = live["metadata"]["uid"]
        outcome = ApplyResult.CHANGED if is_ours else ApplyResult.ADOPTED
        if known and not self.dry_run:
            return done(outcome, self.cluster.apply(kind, body))
        try:
            answer = self.cluster.apply(kind, body, dry_run=True)
        except (Conflict, Immutable):
            if not is_ours or is_applied_by_us(live):
                raise
            return self._take_over(manifest, live)
        if _is_as_it_was(answer.body, live):
            return done(ApplyResult.UNCHANGED, answer)
        return done(outcome, answer if self.dry_run else self.cluster.apply(kind, body))

    def _take_over(self, manifest: Manifest, live: Body) -> Applied:
        """An object that the Harvester Upgrade Manager has made for this very plan does its work as it is."""
        fields = manifest.spec.set_on_take_over if isinstance(manifest.spec, Owned) else ()
        expected = {path: look_up(manifest.body, path) for path in fields if look_up(live, path)}
        answer = Answer(body=live)
        if expected:
            patch = patch_of(expected, live["metadata"]["resourceVersion"])
            answer = self._send(self._kind(manifest.ref), manifest.ref, patch)
        because = f"{manifest.ref} was created for this plan by another manager and stays as it is"
        done = _done(manifest.ref, manifest.file, ApplyResult.ADOPTED, answer)
        return replace(done, because=because)

    def _has_drifted(self, manifest: Manifest, live: Body) -> bool:
        """Drift is corrected for maintained objects only."""
        maintained = isinstance(manifest.spec, Owned) and manifest.spec.maintained
        return maintained and any(unmet(live, manifest.body, self.schemas.of(manifest.body)))

    def _release(self, ref: Ref, answer: Answer) -> Answer:
        claim = release_of(answer.body)
        if not claim:
            return answer
        try:
            return self._send(self._kind(ref), ref, Patch(operations=claim))
        except Invalid as error:  # the test of managedFields did not hold
            raise Conflict(ref, "its managed fields have changed") from error

    def _send(self, kind: Kind, ref: Ref, patch: Patch) -> Answer:
        if patch.merge is None:
            return self.cluster.json_patch(kind, ref, patch.operations, dry_run=self.dry_run)
        return self.cluster.patch(kind, ref, patch.merge, dry_run=self.dry_run)

    def _kind(self, ref: Ref) -> Kind:
        return self.kinds.row(ref.api_version, ref.kind).kind


def _why_not(plan: Plan, manifest: Manifest, live: Body | None, recorded: str | None) -> Applied | None:
    """The result for an owned manifest that is not to be sent at all."""
    ref, file = manifest.ref, manifest.file
    if live is None:
        maintained = isinstance(manifest.spec, Owned) and manifest.spec.maintained
        if recorded is None or maintained:
            return _unresolved(manifest)
        because = f"{ref} was created and is gone; run-once objects are never recreated automatically"
        return Applied(ref=ref, file=file, outcome=ApplyResult.MISSING, because=because)
    if since := deletion_timestamp(live):
        because = f"{ref} is being deleted (since {since})"
        return Applied(ref=ref, file=file, outcome=ApplyResult.WAITING, because=because, body=live)
    if problem := refusal_of(plan, live, file):
        return Applied(
            ref=ref, file=file, outcome=ApplyResult.REFUSED, because=problem.message, problem=problem, body=live
        )
    return _unresolved(manifest)


def _unresolved(manifest: Manifest) -> Applied | None:
    """The refusal of a manifest that says what nobody can know before run time."""
    if not manifest.run_time:
        return None
    paths = ", ".join(map(path_name, manifest.run_time))
    problem = Problem(
        reason="RunTimeValue",
        message=f"{manifest.ref} cannot be applied: {paths} is known only at run time",
        file=manifest.file,
        remedy="apply it with `upgradeplan run`, which captures the value when the step starts",
    )
    return Applied(
        ref=manifest.ref, file=manifest.file, outcome=ApplyResult.REFUSED, because=problem.message, problem=problem
    )


def _tried(ref: Ref, file: str, act: Callable[[], Applied]) -> Applied:
    try:
        return act()
    except REFUSALS as error:
        return refused(ref, file, error)


def _done(ref: Ref, file: str, outcome: ApplyResult, answer: Answer) -> Applied:
    return Applied(ref=ref, file=file, outcome=outcome, body=answer.body, warnings=answer.warnings)


def _is_as_it_was(after: Body, live: Body) -> bool:
    """True if a dry run changed nothing, ownership of fields included. The status is ignored: it changes meanwhile."""
    return _without_status(after) == _without_status(live)


def _without_status(body: Body) -> dict[str, Any]:
    metadata = {key: value for key, value in body["metadata"].items() if key != "resourceVersion"}
    claims = [entry for entry in metadata.get("managedFields") or () if not entry.get("subresource")]
    return {**body, "status": None, "metadata": {**metadata, "managedFields": claims}}
