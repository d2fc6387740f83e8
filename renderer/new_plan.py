"""Makes a new UpgradePlan, and the object that says where its ISO image is: what `upgradeplan new` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from renderer.documents import Inputs, plan_of, recognize
from renderer.errors import Problem, Problems
from renderer.frozen import frozen
from renderer.input_rules import input_problems, input_warnings, nearest_plan_name
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.names import is_subdomain
from renderer.plan_rules import TOOLKIT_IMAGE
from renderer.source_document import without_lines
from renderer.validation.messages import found

_NAMESPACE = "harvester-system"
_API = "harvesterhci.io/v1beta1"


@frozen
class NewPlan:
    """The operator's wishes. `version` names a Version, `image` a VirtualMachineImage that holds the ISO image, which
    takes precedence. With `iso_url` that object is made as well; `iso_checksum` is the ISO image's SHA-512."""

    version: str = ""
    image: str = ""
    name: str = ""
    iso_url: str = ""
    iso_checksum: str = ""
    toolkit_tag: str = ""
    toolkit_image: str = ""
    preload_concurrency: int | None = None
    pause_nodes: tuple[str, ...] = ()
    restore_vms: bool = False


def new_documents(given: NewPlan, values: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The object of the ISO image, if any, and the plan. Raises `Problems` where `validate` would refuse them."""
    made = (*([_source_of(given, values)] if given.iso_url else []), _plan_of(given))
    inputs, problems = recognize([without_lines(body, f"the new {body['kind']}") for body in made])
    if wrong := [*problems, *input_problems(inputs), *_of_the_version(inputs), *_of_the_source(inputs)]:
        raise Problems(wrong)
    return made


def _of_the_version(inputs: Inputs) -> Iterator[Problem]:
    """A Version of that name cannot exist. An existing plan that names one waits for it and reports that."""
    plan = plan_of(inputs)
    version = plan.body["spec"].get("version")
    if version is not None and not is_subdomain(version):
        message, remedy = f"{found(version)} is not a name that a Version can have", "write it such as v1.8.0"
        yield plan.problem("InvalidName", message, ("spec", "version"), remedy=remedy)


def _of_the_source(inputs: Inputs) -> list[Problem]:
    """Refuses what `validate` only warns of, since the cluster might accept it: a new plan should not start that
    way."""
    return [problem for problem in input_warnings(inputs) if problem.reason == "InvalidValue"]


def _plan_of(given: NewPlan) -> dict[str, Any]:
    name = given.name or nearest_plan_name(f"to-{given.version or given.image}")
    annotations = {TOOLKIT_IMAGE: given.toolkit_image} if given.toolkit_image else {}
    spec: dict[str, Any] = {"image": given.image} if given.image else {"version": given.version}
    if given.toolkit_tag:
        spec["upgrade"] = given.toolkit_tag
    if given.preload_concurrency is not None:
        spec["imagePreloadOption"] = {"concurrency": given.preload_concurrency}
    if given.pause_nodes:
        spec["nodeUpgradeOption"] = {"pauseNodes": [*dict.fromkeys(given.pause_nodes)]}
    spec["restoreVM"] = given.restore_vms
    metadata = {"name": name, **({"annotations": annotations} if annotations else {})}
    return {"apiVersion": PLAN_API_VERSION, "kind": "UpgradePlan", "metadata": metadata, "spec": spec}


def _source_of(given: NewPlan, values: Mapping[str, Any]) -> dict[str, Any]:
    """A Version, or for a plan that names an image the image itself, as the loop would make it."""
    if not given.image:
        checksum = {"isoChecksum": given.iso_checksum} if given.iso_checksum else {}
        metadata: dict[str, Any] = {"name": given.version, "namespace": _NAMESPACE}
        spec: dict[str, Any] = {"isoURL": given.iso_url, **checksum}
        return {"apiVersion": _API, "kind": "Version", "metadata": metadata, "spec": spec}
    metadata = {
        "name": given.image,
        "namespace": _NAMESPACE,
        "annotations": {"harvesterhci.io/os-upgrade-image": "True"},
    }
    spec = {
        "backend": "cdi",
        "displayName": given.image,
        "sourceType": "download",
        "url": given.iso_url,
        "checksum": given.iso_checksum,
        "retry": values["isoImportRetries"],
        "targetStorageClassName": values["isoStorageClass"],
    }
    return {"apiVersion": _API, "kind": "VirtualMachineImage", "metadata": metadata, "spec": spec}
