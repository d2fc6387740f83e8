"""The release by address and out of an ISO image: a server on the loopback, and images that the test makes."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

import pycdlib
import pytest

from renderer.errors import ExitCode, Problems
from renderer.files.fetch import fetch
from renderer.files.inputs import read_inputs
from renderer.files.iso import is_iso, read_iso
from renderer.redaction import bare_address

RELEASE = b"harvester: 1.10\nos: Harvester 1.10\nkubernetes: v1.35.2+rke2r1\n"
REMEDY = "\n    remedy: check the URL, or download the file and pass it with --release FILE"
SETTING = "apiVersion: harvesterhci.io/v1beta1\nkind: Setting\nmetadata: {name: server-version}\nvalue: v1.7.1\n"
Answer = Callable[[BaseHTTPRequestHandler], None]


# ------------------------------------------------------------------------------------------------------------ address


@contextmanager
def serving(answer: Answer, monkeypatch: pytest.MonkeyPatch, certificate: Path | None = None) -> Iterator[str]:
    """Base address of a server that gives one answer to everything; with a certificate it speaks https."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"{'https' if certificate else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def giving(status: int, body: bytes = b"", length: int | None = None, **headers: str) -> Answer:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def saying(status: str) -> Answer:
    """A status in the server's own words."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())

    return answer


def refusal(url: str, **limits: float) -> str:
    with pytest.raises(Problems) as caught:
        fetch(url, **limits)  # type: ignore[arg-type]
    assert caught.value.exit_code is ExitCode.BAD_INPUT
    return str(caught.value)


def test_a_release_is_fetched_and_stays_text(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(giving(200, RELEASE), monkeypatch) as base:
        inputs = read_inputs(release=f"{base}/harvester-release.yaml?token=secret")
    assert inputs.release is not None
    assert inputs.release.body["harvester"] == "1.10"
    assert inputs.release.place == f"{base}/harvester-release.yaml:1"


def test_a_redirect_is_followed_but_only_to_http(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with serving(giving(200, RELEASE), monkeypatch) as target:
        with serving(giving(302, Location=f"{target}/x"), monkeypatch) as base:
            assert fetch(base) == RELEASE
        for other in ("ftp://127.0.0.1/x", f"file://{tmp_path}/x"):
            with serving(giving(302, Location=other), monkeypatch) as base:
                assert refusal(base).startswith(f"{base}: ")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (giving(404), "the server answered 404 Not Found; 200 is expected"),
        (giving(500, b"oops"), "the server answered 500 Internal Server Error; 200 is expected"),
        (giving(204), "the server answered 204 No Content; 200 is expected"),
        (giving(206, RELEASE), "the server answered 206 Partial Content; 200 is expected"),
        (saying("403 no: rosebud"), "the server answered 403 Forbidden; 200 is expected"),
        (saying("299 rosebud"), "the server answered 299; 200 is expected"),
        (giving(200, RELEASE, length=1000), "the response ended 938 bytes early"),
        (lambda handler: None, "cannot be fetched: Remote end closed connection without response"),
        (
            lambda handler: handler.wfile.write(b"SSH-2.0-x\r\n") and None,
            "cannot be fetched: the server does not answer in HTTP",
        ),
    ],
    ids=["404", "500", "204", "206", "own words", "own status", "broken off", "closed", "no http"],
)
def test_anything_but_a_whole_200_is_one_clear_problem(
    answer: Answer, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(answer, monkeypatch) as base:
        assert refusal(f"{base}/r.yaml") == f"{base}/r.yaml: {message}{REMEDY}"


def test_a_page_or_an_image_instead_of_the_file_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    page = giving(200, b"<html><body>Sign in: <b>here</b></body></html>")
    with serving(page, monkeypatch) as base, pytest.raises(Problems, match="harvester: is missing"):
        read_inputs(release=base)
    with serving(giving(200, bytes(2**20 + 1)), monkeypatch) as base:
        assert refusal(base) == (
            f"{base}: is not a harvester-release.yaml: larger than 1024 KiB\n"
            "    remedy: download an ISO image and pass the file"
        )


def test_a_server_that_says_nothing_is_not_waited_for_longer_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()

    def silent(handler: BaseHTTPRequestHandler) -> None:
        over.wait(30)

    with serving(silent, monkeypatch) as base:
        try:
            assert refusal(base, timeout=0.1) == f"{base}: no complete response within 0.1 s{REMEDY}"
        finally:
            over.set()


def dripping(handler: BaseHTTPRequestHandler, piece: bytes) -> None:
    """Sends a piece again and again, each one in time, until nobody takes it."""
    with suppress(OSError):
        while True:
            handler.wfile.write(piece)
            handler.wfile.flush()
            threading.Event().wait(0.01)


def _drip_body(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    dripping(handler, b"x")


def _drip_headers(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    dripping(handler, b"A: b\r\n")


def _redirect_slowly(handler: BaseHTTPRequestHandler) -> None:
    threading.Event().wait(0.05)
    giving(302, Location=f"{handler.path}x")(handler)


@pytest.mark.parametrize(
    "answer",
    [
        _drip_body,
        _redirect_slowly,
        partial(dripping, piece=b"HTTP/1.1 100 Continue\r\n\r\n"),
        partial(dripping, piece=b"H"),
        _drip_headers,
    ],
    ids=["body", "redirects", "100 Continue", "status line", "headers"],
)
def test_a_server_that_is_slow_in_small_pieces_is_not_waited_for_longer_than_the_limit(
    answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(answer, monkeypatch) as base:
        started = time.monotonic()
        assert refusal(f"{base}/r", timeout=0.15) == f"{base}/r: no complete response within 0.15 s{REMEDY}"
        assert time.monotonic() - started < 5


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1 that signs itself, with its key."""
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    subject = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    new = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1")
    subprocess.run([*new, *subject, "-keyout", file, "-out", file.with_name("c.pem")], check=True, capture_output=True)
    file.write_text(file.read_text() + file.with_name("c.pem").read_text())
    return file


@pytest.mark.parametrize(
    ("location", "message"),
    [
        (
            "http://127.0.0.1:1/r.yaml?sig=abcdef",
            "redirects from https to http://127.0.0.1:1/r.yaml, which is not secure",
        ),
        ("https://me:word@127.0.0.1:1/", "redirects to an address that contains a user name or password"),
    ],
)
def test_a_redirect_to_what_is_not_secure_is_refused(
    location: str, message: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with serving(giving(302, Location=location), monkeypatch, certificate) as base:
        assert refusal(f"{base}/r.yaml?sig=abcdef") == f"{base}/r.yaml: {message}{REMEDY}"


def test_a_redirect_from_https_to_https_is_followed(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with (
        serving(giving(200, RELEASE), monkeypatch, certificate) as target,
        serving(giving(302, Location=f"{target}/x"), monkeypatch, certificate) as base,
    ):
        assert fetch(base) == RELEASE


def test_what_is_not_there_to_be_asked_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/x"
        assert refusal(url) == f"{url}: cannot be fetched: Connection refused{REMEDY}"
    assert "cannot be fetched: no host given" in refusal("http://")
    assert "cannot be fetched: nonnumeric port" in refusal("http://127.0.0.1:x/")
    assert "cannot be fetched: " in refusal("http://[::1/x")
    assert "cannot be fetched: " in refusal(f"http://{'a' * 70}.invalid/x")
    assert "cannot be fetched: " in refusal("http://127.0.0.1/a b\n")


def test_an_address_with_a_password_is_refused_in_words() -> None:
    assert refusal("http://me:secret@127.0.0.1:1/r.yaml").startswith(
        "http://127.0.0.1:1/r.yaml: contains a user name or password, which any process list would show\n"
    )


def test_an_address_may_be_written_in_capitals(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(giving(200, RELEASE), monkeypatch) as url:
        found = read_inputs(release=f"{url.replace('http', 'HTTP')}/r.yaml").release
    assert found
    assert found.body["harvester"] == "1.10"


def test_secrets_of_an_address_are_not_shown() -> None:
    assert (
        bare_address("https://user:password@mirror.example.com:8443/r.yaml?sig=abc#x")
        == "https://mirror.example.com:8443/r.yaml"
    )


# ---------------------------------------------------------------------------------------------------------- ISO image

LISTS = "bundle/harvester/images-lists-archive"
FILES = {
    "harvester-release.yaml": RELEASE,
    f"{LISTS}/current/image_list_all.txt": b"rancher/a:2\nrancher/b:1\n\n",
    f"{LISTS}/v1.7.1/image_list_all.txt": b"rancher/a:1\nrancher/b:1\n",
    f"{LISTS}/v1.6.1/image_list_all.txt": b"rancher/c:1\n",
}


def image(path: Path, files: dict[str, bytes], *, rock_ridge: bool = False, joliet: bool = False) -> Path:
    """An image of level 1, so that its plain names are short."""
    iso = pycdlib.PyCdlib()
    iso.new(interchange_level=1, rock_ridge="1.09" if rock_ridge else None, joliet=3 if joliet else None)
    made: set[str] = set()
    for name, content in files.items():
        *folders, file = name.split("/")
        for depth, folder in enumerate(folders, 1):
            if (below := "/".join(folders[:depth])) not in made:
                made.add(below)
                iso.add_directory(
                    "/" + "/".join(map(short, folders[:depth])),
                    rr_name=folder if rock_ridge else None,
                    joliet_path=f"/{below}" if joliet else None,
                )
        base, _, extension = file.rpartition(".")
        iso.add_fp(
            BytesIO(content),
            len(content),
            "/" + "/".join([*map(short, folders), f"{short(base)}.{extension[:3].upper()};1"]),
            rr_name=file if rock_ridge else None,
            joliet_path=f"/{name}" if joliet else None,
        )
    iso.write(str(path))
    iso.close()
    return path


def short(name: str) -> str:
    return name.upper().replace("-", "_").replace(".", "_")[:8]


FORMS = {
    "plain": {},
    "rock ridge": {"rock_ridge": True},
    "joliet": {"joliet": True},
    "both": {"rock_ridge": True, "joliet": True},
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_release_and_its_image_lists_are_read_out_of_an_image(
    form: dict[str, bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    image(Path("harvester.img"), FILES, **form)
    Path("settings.yaml").write_text(SETTING)
    inputs = read_inputs(["settings.yaml"], release="harvester.img")
    assert inputs.release is not None
    assert inputs.release.body == {"harvester": "1.10", "os": "Harvester 1.10", "kubernetes": "v1.35.2+rke2r1"}
    assert inputs.release.place == "harvester.img:/harvester-release.yaml:1"
    assert inputs.facts == {
        "imageLists": {"current": ["rancher/a:2", "rancher/b:1"], "previous": ["rancher/a:1", "rancher/b:1"]}
    }


def test_the_previous_version_is_the_one_that_the_plan_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    image(Path("h.iso"), FILES, rock_ridge=True)
    Path("all.yaml").write_text(
        "apiVersion: management.harvesterhci.io/v1beta1\nkind: UpgradePlan\nmetadata: {name: p}\nspec: {version: v1}\n"
        f"status: {{previousVersion: v1.6.1}}\n---\n{SETTING}"
    )
    assert read_inputs(["all.yaml"], release="h.iso").facts["imageLists"]["previous"] == ["rancher/c:1"]
    Path("all.yaml").write_text(SETTING.replace("v1.7.1", "v1.5.0"))
    assert set(read_inputs(["all.yaml"], release="h.iso").facts["imageLists"]) == {"current"}


def test_an_image_with_long_names_of_few_characters_is_read(tmp_path: Path) -> None:
    """Interchange level 3: 31 characters, but no small letters and no `-`."""
    iso = pycdlib.PyCdlib()
    iso.new(interchange_level=3)
    iso.add_fp(BytesIO(RELEASE), len(RELEASE), "/HARVESTER_RELEASE.YAML;1")
    iso.write(str(tmp_path / "a.iso"))
    iso.close()
    (document,) = read_iso(tmp_path / "a.iso", None)
    assert document.text["harvester"] == "1.10"


def test_an_image_that_is_cut_off_before_the_release_is_told(tmp_path: Path) -> None:
    path = image(tmp_path / "a.iso", {"harvester-release.yaml": RELEASE}, rock_ridge=True)
    data = path.read_bytes()
    path.write_bytes(data[: data.index(RELEASE)])
    with pytest.raises(Problems, match=r"is damaged, or ends before it\n    remedy: fetch the image again"):
        read_iso(path, None)


def test_an_image_without_lists_gives_the_release_alone(tmp_path: Path) -> None:
    path = image(tmp_path / "h.iso", {"harvester-release.yaml": RELEASE}, rock_ridge=True)
    assert [document.value["harvester"] for document in read_iso(path, "v1.7.1")] == [1.1]


def test_an_image_is_known_by_its_content(tmp_path: Path) -> None:
    assert is_iso(image(tmp_path / "release.yaml", FILES))
    (tmp_path / "x.iso").write_bytes(RELEASE)
    assert not is_iso(tmp_path / "x.iso")
    assert not is_iso(tmp_path / "none")
    inputs = read_inputs(release=str(tmp_path / "x.iso"))
    assert inputs.release is not None


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"readme.txt": b"x"}, ": is not a Harvester image: no harvester-release.yaml in it"),
        ({"harvester-release.yaml/x": b""}, ": is not a Harvester image: no harvester-release.yaml in it"),
        ({"harvester-release.yaml": b"\0"}, ":/harvester-release.yaml: is a binary file"),
        (
            {"harvester-release.yaml": b"a: 1\na: 2\n"},
            ":/harvester-release.yaml:2: duplicate key 'a'",
        ),
        ({"harvester-release.yaml": b"x: 1\n"}, ":/harvester-release.yaml:1: harvester: is missing"),
        ({"harvester-release.yaml": bytes(5 * 2**20)}, ":/harvester-release.yaml: is larger than 4 MiB"),
        (
            {**FILES, f"{LISTS}/current/image_list_all.txt": b"\n"},
            f":/{LISTS}/current/image_list_all.txt: the image list is empty; with it, every image on the nodes would "
            "count as unused",
        ),
    ],
)
def test_what_is_wrong_with_an_image_is_told(
    files: dict[str, bytes], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    image(Path("h.iso"), files, rock_ridge=True)
    with pytest.raises(Problems) as caught:
        read_inputs(release="h.iso")
    first, *_ = caught.value.problems
    assert str(first).partition("\n")[0] == f"h.iso{message}"
    assert first.remedy


@pytest.mark.parametrize("keep", [32774, 34816, 40000, 50000])
def test_a_damaged_image_ends_in_a_problem(keep: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = image(Path("whole.iso"), FILES, rock_ridge=True).read_bytes()
    for name, damaged in {"cut.iso": whole[:keep], "zero.iso": whole[:keep] + bytes(len(whole) - keep)}.items():
        Path(name).write_bytes(damaged)
        with pytest.raises(Problems) as caught:
            read_inputs(release=name)
        assert all(
            problem.file and problem.file.startswith(name) and problem.remedy for problem in caught.value.problems
        )
