"""Checks whose neglect loses a node are asked again as soon as what they need is known."""

from __future__ import annotations

from support.preflight_cases import template_set

from reconcile.preflight.check_context import checks_of
from renderer.model.check import CheckTime


def test_the_firmware_is_asked_for_once_more_when_the_release_of_an_image_has_been_read() -> None:
    firmware = next(item.check for item in checks_of(template_set().catalog) if item.check.id == "host-firmware")
    assert {CheckTime.START, CheckTime.BEFORE_CLUSTER_UPGRADE} <= set(firmware.when)
