"""The bill of materials of an image, as CycloneDX: our package, those that it needs, and who needs whom.

It is read off the packages that were installed for the image. What the base brings is the base's to say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import Distribution, distributions
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release.site_packages import PYTHON
from release.source import Source

OURS = "upgradeplan"
_IMAGE = {"python_version": PYTHON, "python_full_version": f"{PYTHON}.0", "extra": ""}
_IMAGE |= {"sys_platform": "linux", "platform_system": "Linux", "platform_python_implementation": "CPython"}


def bill_of_materials(source: Source, packages: Path) -> str:
    """JSON of the packages in a folder."""
    found = {_name(each.name): each for each in distributions(path=[str(packages)])}
    components = {name: _component(each) for name, each in sorted(found.items())}
    bom = Bom(serial_number=uuid5(NAMESPACE_URL, f"{OURS}@{source.commit}"))
    bom.metadata.timestamp = datetime.fromtimestamp(source.epoch, UTC)
    bom.metadata.component = components[OURS]
    bom.components.update(item for name, item in components.items() if name != OURS)
    for name, component in components.items():
        bom.register_dependency(component, [components[each] for each in _needed(found[name], components)])
    return f"{JsonV1Dot6(bom).output_as_string(indent=2)}\n"


def _name(text: str) -> str:
    """In the one spelling that an index has."""
    return canonicalize_name(text)


def _component(found: Distribution) -> Component:
    said = found.metadata.json
    purl = PackageURL("pypi", name=_name(found.name), version=found.version)
    license_said = str(said.get("license_expression", ""))
    return Component(
        name=found.name,
        version=found.version,
        type=ComponentType.APPLICATION if found.name == OURS else ComponentType.LIBRARY,
        purl=purl,
        bom_ref=str(purl),
        description=str(said.get("summary", "")),
        licenses=[LicenseFactory().make_from_string(license_said)] if license_said else [],
    )


def _needed(found: Distribution, known: Mapping[str, Component]) -> Iterator[str]:
    for text in found.requires or ():
        requirement = Requirement(text)
        name = _name(requirement.name)
        if name in known and (requirement.marker is None or requirement.marker.evaluate(_IMAGE)):
            yield name
