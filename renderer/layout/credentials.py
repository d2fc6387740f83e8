"""Credentials in what is rendered: an object may need them, so they are not hidden there, but reported.

Layouts that agents pull from Git hold none unless they are allowed. What another output has hidden is no value: it is
neither rendered nor approved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from renderer.digest import canonical
from renderer.errors import Problem, Problems
from renderer.frozen import frozen
from renderer.model.path import path_name, walk
from renderer.model.rendered import RenderedPlan
from renderer.redaction import REDACTED, RedactionRules, Redactor, is_redacted

_REMEDY = "serve the file without credentials, or let the object name a Secret"


@frozen
class RenderedCredential:
    """A field of a manifest that holds a secret."""

    file: str
    object: str
    field: str

    def warning(self) -> Problem:
        return Problem(
            reason="CredentialInManifest",
            message=f"{self.object} contains a credential",
            file=self.file,
            field=self.field,
            remedy=_REMEDY,
        )


def credentials_of(
    plan: RenderedPlan, rules: RedactionRules, redactor: Redactor | None = None
) -> tuple[RenderedCredential, ...]:
    """Every field of every manifest that outputs hide, by a redactor of these rules."""
    redactor = redactor or Redactor(rules)
    return tuple(
        RenderedCredential(file=manifest.file, object=str(manifest.ref), field=path_name(path))
        for manifest in plan.manifests()
        for path in redactor.found(manifest.body)
    )


def refuse_credentials(credentials: Iterable[RenderedCredential], layout: str) -> None:
    """Raises `Problems` if there are any."""
    found = [
        Problem(
            reason="CredentialInManifest",
            message=f"{item.object} contains a credential, and the layout {layout} is for a Git repository",
            file=item.file,
            field=item.field,
            remedy=f"{_REMEDY}; --allow-secrets writes it anyway",
        )
        for item in credentials
    ]
    if found:
        raise Problems(found)


def redacted_problems(plan: RenderedPlan) -> Iterator[Problem]:
    """A problem for each rendered value that was hidden before, such as by `facts`."""
    for manifest in plan.manifests():
        if REDACTED not in canonical(manifest.body):
            continue
        for path, value in walk(manifest.body):
            if isinstance(value, str) and is_redacted(value):
                yield Problem(
                    reason="RedactedInput",
                    message=f"{manifest.ref} would get a value that was redacted: an input is not the original object",
                    file=manifest.file,
                    field=path_name(path),
                    remedy="give the object as `kubectl get -o yaml` prints it",
                )
