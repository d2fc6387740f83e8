"""Decides which upgrades are eligible: version parsing and the decision table.

A version is text. Strict SemVer 2 after one leading `v` is a release or a pre-release; anything else is a development
build. Numbers are compared as numbers; build metadata (`+rke2r1`) takes no part.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from renderer.errors import shortened
from renderer.frozen import frozen

_LONGEST = 256  # characters of a version, as the library has it that the existing manager uses
_SEMVER = (
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?"
    r"(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?"
)


@frozen
class Version:
    """`stable` is None for a development build; `prerelease` is empty for a release."""

    text: str
    stable: tuple[int, int, int] | None
    prerelease: tuple[str, ...] = ()

    @property
    def is_development(self) -> bool:
        return self.stable is None


def parse_version(text: str) -> Version:
    """Raises `ValueError` for the empty text."""
    bare = text.removeprefix("v")
    if not bare:
        raise ValueError("invalid version string")
    match = re.fullmatch(_SEMVER, bare)
    if not match or not bare.isascii() or len(bare) > _LONGEST:
        return Version(text=text, stable=None)
    major, minor, patch, prerelease = match.groups()
    return Version(
        text=text,
        stable=(int(major), int(minor), int(patch)),
        prerelease=tuple(prerelease.split(".")) if prerelease else (),
    )


def is_older(left: Version, right: Version) -> bool:
    """SemVer precedence; both must be no development builds."""
    return _precedence(left) < _precedence(right)


def is_too_old(current: str, oldest: str) -> bool:
    """True for a release that is older than the oldest that can be upgraded; a development build cannot be compared."""
    return is_release(current) and is_older(parse_version(current), parse_version(oldest))


def is_among(text: str, versions: Collection[str]) -> bool:
    """True if one of `versions` is this one or its line, such as 1.8.x. A pre-release counts as the version that it
    leads to; a development build is among none."""
    stable = parse_version(text).stable if is_release(text) else None
    return stable is not None and not {"{}.{}.{}".format(*stable), "{}.{}.x".format(*stable)}.isdisjoint(versions)


def is_release(text: str) -> bool:
    """A release or a pre-release, which can be compared."""
    try:
        return not parse_version(text).is_development
    except ValueError:
        return False


def refusal(*, current: str, target: str, minimum: str = "", strict: bool = True) -> str | None:
    """Explains why the upgrade is not eligible, in the existing manager's words; None where it is.

    `strict` refuses a development build as the current version of an upgrade to a release.
    """
    try:
        new, old = parse_version(target), parse_version(current)
        least = parse_version(minimum) if minimum else None
    except ValueError as error:
        return str(error)
    if new.is_development:
        return None
    if old.is_development:
        return "upgrading from dev versions to non-dev versions is prohibited" if strict else None
    return _release_refusal(old, new, least)


def explained_refusal(*, current: str, target: str, minimum: str = "", strict: bool = True) -> str | None:
    """The same with the versions, and the release to upgrade to first where there is one."""
    refused = refusal(current=current, target=target, minimum=minimum, strict=strict)
    if refused is None:
        return None
    numbers = (("current", current), ("target", target), ("minimum", minimum))
    first = first_to(current=current, target=target, minimum=minimum)
    way = f"; upgrade to {first} first" if first else ""
    return f"{refused} ({', '.join(f'{name} {shortened(version)}' for name, version in numbers if version)}){way}"


def newest_target(*, current: str, minima: Mapping[str, str]) -> str:
    """Of releases, each with the oldest version that it can be upgraded to from, the newest one that is newer than the
    current one and is not refused; empty if there is none."""
    eligible = [
        parse_version(target)
        for target, minimum in minima.items()
        if is_release(current) and is_release(target) and is_older(parse_version(current), parse_version(target))
        if refusal(current=current, target=target, minimum=minimum) is None
    ]
    return max(eligible, key=_precedence).text if eligible else ""


def first_to(*, current: str, target: str, minimum: str = "") -> str | None:
    """The release that has to come before a target that is refused: one of the minimum's line, or the release that a
    pre-release led to. None if there is none, as for a downgrade."""
    try:
        new, old = parse_version(target), parse_version(current)
        least = parse_version(minimum) if minimum else None
    except ValueError:
        return None
    if new.is_development or old.is_development or not is_older(old, new):
        return None
    if least is not None and least.stable and is_older(old, least):
        same_line = old.stable is not None and old.stable[:2] == least.stable[:2]
        return least.text if same_line else f"v{least.stable[0]}.{least.stable[1]}.x"
    if old.prerelease and old.stable and old.stable != new.stable:
        return "v{}.{}.{}".format(*old.stable)
    return None


def _release_refusal(old: Version, new: Version, least: Version | None) -> str | None:
    if _precedence(old) == _precedence(new):
        return None
    if is_older(new, old):
        return "downgrading is prohibited"
    if least is not None and least.is_development:
        return "incomparable: dev version"
    if least is not None and is_older(old, least):
        return "current version does not meet minimum upgrade requirement"
    if old.prerelease and old.stable != new.stable:
        return "cross-version upgrades from/to any prerelease version are prohibited"
    return None


def _precedence(version: Version) -> tuple[object, ...]:
    identifiers = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in version.prerelease)
    return (*(version.stable or ()), not version.prerelease, identifiers)
