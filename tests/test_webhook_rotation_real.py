"""The webhook's certificates are renewed while an API server asks for answers: no request is dropped."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from threading import Event, Thread

import pytest
from bench.live import PLANS
from controlplane.cluster import ControlPlane
from controlplane.waiting import until
from support.real_webhook import SECRET, USER, WRONG, asked, is_asked, refused, replica, seed_site

from reconcile.admission.rotation import Lifetimes
from reconcile.admission.stored import material_in

pytestmark = [pytest.mark.controlplane, pytest.mark.lane("upgrades")]


@pytest.fixture(scope="module")
def account(clean_control_plane: ControlPlane) -> Path:
    return seed_site(clean_control_plane)


class Asker(Thread):
    """Asks the API server to create plans, one every few milliseconds, and keeps what it says."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__(daemon=True)
        self._plane = plane
        self._over = Event()
        self.answers: list[int] = []
        self.failures: list[str] = []

    def run(self) -> None:
        while not self._over.wait(0.02):
            error = refused(lambda: self._plane.api.create(f"{PLANS}?dryRun=All", WRONG))
            self.answers.append(error.code if error else 201)
            if error is not None and error.code != 422:
                self.failures.append(str(error))

    def finish(self) -> None:
        self._over.set()
        self.join()


def rotated(plane: ControlPlane, account: Path, lifetimes: Lifetimes, *, authorities: int, certificates: int) -> None:
    """Two replicas serve, of which the one that is asked does not lead. No request is dropped."""
    with (
        replica(plane, account, lifetimes=lifetimes) as leader,
        replica(plane, account, leads=False, lifetimes=lifetimes) as other,
        asked(plane, other.webhook.port),
    ):
        until("the webhook is asked", lambda: is_asked(plane))
        seen, signers = set[bytes](), set[bytes]()
        asker = Asker(plane)
        asker.start()

        def enough() -> bool:
            found = material_in(plane.api.get(SECRET))
            seen.add(found.serving.certificate)
            signers.add(found.authorities[0])
            return len(seen) >= certificates and len(signers) >= authorities

        try:
            until("all have been renewed", enough, 300.0)
        finally:
            asker.finish()
        assert asker.failures == []
        assert set(asker.answers) == {422}
        assert [what for what, _ in leader.lines].count("webhook certificate") >= certificates - 1


def seconds(serving: float, authority: float, *, settling: float, backdated: float) -> Lifetimes:
    return Lifetimes(
        authority=timedelta(seconds=authority),
        serving=timedelta(seconds=serving),
        settling=timedelta(seconds=settling),
        backdated=timedelta(seconds=backdated),
    )


def test_a_certificate_is_renewed_while_requests_go_on(clean_control_plane: ControlPlane, account: Path) -> None:
    plane = clean_control_plane
    mark = plane.audit_mark()
    rotated(plane, account, seconds(4, 600, settling=1, backdated=2), authorities=1, certificates=3)
    calls = plane.audit(since=mark, user=USER)
    assert "patch" in {call.verb for call in calls if call.resource == "secrets"}
    assert [str(call) for call in calls if call.code == 403] == []


@pytest.mark.full(
    "certificates that live for a minute, and authorities for two, on a real API server: three minutes; certificates "
    "of seconds there, and the rotation of authorities on a clock (test_webhook_certificates.py) stand for it"
)
def test_certificates_of_a_minute_and_their_authorities(clean_control_plane: ControlPlane, account: Path) -> None:
    refused(lambda: clean_control_plane.api.delete(SECRET))  # made by the test before, if it has run
    rotated(clean_control_plane, account, seconds(60, 120, settling=5, backdated=10), authorities=2, certificates=4)
