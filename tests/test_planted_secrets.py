"""Secrets are planted in every input, and no output of any command may show one of them.

`PLANTED` has a row for each kind of secret, `OUTPUTS` one for each way out of the program. Manifests are the exception:
an object has what it needs, and `render` says so.
"""

from __future__ import annotations

import base64
import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.rehearsals import ROOT, START, template_set
from support.unreachable import KUBECONFIG

from reconcile.act.apply import ObjectWriter
from reconcile.act.belonging import Plan
from reconcile.act.dry_run import try_phase
from reconcile.cli.facts import as_files
from reconcile.cluster.protocol import Cluster
from reconcile.diff import document, text
from reconcile.diff.build import Tried, diffs_of
from reconcile.diff.masks import rules_from
from reconcile.loop.logs import LogLevel, json_lines, redacted
from reconcile.loop.round_log import RoundLog
from reconcile.observe.collect import collect
from reconcile.observe.readings import Readings
from reconcile.observe.source import DirectSource
from reconcile.schemas import packaged_schemas
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from reconcile.simulator.rehearsal.rehearsal import prepare
from renderer.assemble import assemble, open_template_set
from renderer.cli.program import run
from renderer.documents import Inputs
from renderer.files.inputs import read_inputs
from renderer.files.templates import read_templates
from renderer.model.ref import Body, ref_of
from renderer.redaction import REDACTED, Redactor, packaged_rules

pytestmark = pytest.mark.slow

PEM = "-----BEGIN EC PRIVATE KEY-----\n{}\n-----END EC PRIVATE KEY-----\n"
FORMS: Mapping[str, str] = {
    "address-password": "https://me:{}@h.example.com/x.iso",
    "address-user": "https://{}@h.example.com/x.iso",
    "address-odd-password": "https://me:a/{}@h.example.com/x.iso",
    "database": "postgres://me:{}@db:5432/x",
    "query-token": "https://h.example.com/x?token={}",
    "query-access-token": "https://h.example.com/x?a=b&access_token={}",
    "query-azure": "https://h.blob.core.windows.net/x?sv=2020-08-04&sig={}&sp=r",
    "query-aws": "https://h.s3.example.com/x?X-Amz-Signature={}",
    "query-aws-credential": "https://h.s3.example.com/x?X-Amz-Credential={}%2Fs3",
    "query-google": "https://storage.example.com/x?X-Goog-Signature={}",
    "query-key": "https://h.example.com/x?key={}",
    "query-pw": "https://h.example.com/x?pw={}",
    "query-password": "https://h.example.com/x?a=b;password={}",
    "query-long": "https://h.example.com/x?z=a1B2c3D4e5F6g7H8{}",
    "curl": "curl -u me:{} https://h.example.com",
    "curl-joined": "curl -sSfu 'me:{}' https://h.example.com",
    "curl-long": "curl --user me:{} https://h.example.com",
    "curl-header": "curl -H 'X-Auth-Token: {}' https://h.example.com",
    "sshpass": "sshpass -p {} ssh h",
    "sshpass-joined": "sshpass -p{} ssh h",
    "sshpass-variable": "SSHPASS={} sshpass -e ssh h",
    "chpasswd": "echo 'root:{}' | chpasswd",
    "chpasswd-sudo": "echo root:{} | sudo /usr/sbin/chpasswd -c SHA512",
    "chpasswd-here": "chpasswd <<EOF\nroot:{}\nEOF",
    "docker-login": "docker login -u me -p {} h.example.com",
    "bearer": "Authorization: Bearer {}",
    "bearer-alone": "sent bearer {} to h",
    "basic": "Authorization: Basic {}",
    "cookie": "Cookie: session={}; a=b",
    "private-key": PEM,
    "private-key-one-line": PEM.replace("\n", "\\n"),
    "yaml": "user: me\npassword: {}\n",
    "yaml-block": "user: me\ntoken: |\n  {}\nb: c\n",
    "json": '{{"user":"me","clientSecret":"{}"}}',
    "json-in-json": '{{"a":"{{\\"apiKey\\":\\"{}\\"}}"}}',
    "flag": "server --agent-token {} --debug",
    "flag-equals": "server --password={} --debug",
    "flag-in-json": '["server","--token","{}","--debug"]',
    "variable": "export DB_PASSWORD={}",
    "connection": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={};EndpointSuffix=b",
    "github": "ghp_0000000000000000{}",
    "rke2-token": f"K10{'0a' * 32}::server:{{}}",
    "httpie": "http -a me:{} https://h.example.com/x",
    "keytool": "keytool -list -storepass {} -keystore /etc/k",
    "ssh-keygen": "ssh-keygen -t ed25519 -N {} -f key",
    "stripe": "sk_live_0000000000000000{}",
    "python": 'requests.get(url, auth=("me", "{}"))',
    "net-use": "net use //h/s {} /user:me",
    "snmp": "snmpCommunity: {}",
    "vault": "vault kv put secret/x value={}",
    "mc": "mc alias set s3 https://h.example.com me {}",
    "netrc": "machine h.example.com login me password {}",
    "docker-config": '{{"auths":{{"h.example.com":{{"auth":"{}"}}}}}}',
    "htpasswd": "htpasswd -bB /etc/h me {}",
    "pgpassword": "PGPASSWORD={} psql -h db",
    "mysql": "mysql -u root -p{} -h db",
    "cifs": "mount -t cifs -o username=me,password={} //h/s /m",
    "passwd": "echo {} | passwd --stdin root",
    "ldap": "ldapsearch -x -D cn=admin -w {} -H ldap://h",
    "chap": "node.session.auth.password = {}",
    "wireguard": "PresharedKey = {}",
    "xml": "<password>{}</password>",
    "jdbc": "jdbc:mysql://h/x?user=a&password={}",
    "encoded-colon": "https://me%3A{}@h.example.com/x",
    "hash": "root:$6$salt${}:19000",
    "hash-apache": "me:$apr1$salt${}",
    "hash-ldap": "userpw: {{SSHA}}0000000000{}",
    "pgpass": "db.example.com:5432:app:me:{}",
    "pgpass-any": "*:*:*:me:{}",
    "pgpass-other-port": "db.example.com:15432:app:me:{}",
    "pgpass-echo": "echo 'localhost:5432:*:me:{}' >> ~/.pgpass",
    "pin-json": '{{"user":"me","pin":"{}"}}',
    "pin-yaml": "user: me\npin: {}\n",
    "pin-flag": "pkcs11-tool --login --pin {}",
    "pin-address": "pkcs11:object=a;pin-value={}",
    "expect": 'send "{}\\r"',
    "expect-asked": 'expect "*?assword:*"\nsend -- "two {}\\r"\nexpect eof',
    "expect-in-json": '{{"a":"expect \\"assword:\\" {{ send \\"{}\\\\r\\" }}"}}',
    "pexpect": "child.sendline('{}')",
    "ipsec": ': PSK "{}"',
}
"""What stands around a secret in a text."""

FIELDS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "secret-data": lambda s: _object("v1", "Secret", data={"a": _encoded(s)}),
    "secret-string-data": lambda s: _object("v1", "Secret", stringData={"a": s}),
    "secret-copy": lambda s: _object("v1", "Secret", annotations={_LAST: json.dumps({"data": {"a": _encoded(s)}})}),
    "copy-of-wrangler": lambda s: _object("v1", "Secret", annotations={"objectset.rio.cattle.io/applied": s}),
    "copy-of-cdi": lambda s: _object(
        "v1", "ConfigMap", annotations={"operator.cdi.kubevirt.io/lastAppliedConfiguration": f'{{"a":"{s}"}}'}
    ),
    "copy-of-kapp": lambda s: _object("v1", "ConfigMap", annotations={"kapp.k14s.io/original": f'{{"a":"{s}"}}'}),
    "addon": lambda s: _object("harvesterhci.io/v1beta1", "Addon", spec={"valuesContent": f"a: {s}"}),
    "chart": lambda s: _object(
        "management.cattle.io/v3", "ManagedChart", namespace="fleet-local", spec={"values": {"a": s}}
    ),
    "user-data": lambda s: _object(
        "kubevirt.io/v1",
        "VirtualMachine",
        spec={
            "running": False,
            "template": {"spec": {"volumes": [{"name": "c", "cloudInitNoCloud": {"userData": s}}]}},
        },
    ),
}
"""Objects that have the secret as the value of a field."""

_LAST = "kubectl.kubernetes.io/last-applied-configuration"


def _object(api_version: str, kind: str, *, namespace: str = "default", annotations: Any = None, **parts: Any) -> Any:
    metadata = {"namespace": namespace, **({"annotations": annotations} if annotations else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def _encoded(secret: str) -> str:
    return base64.b64encode(secret.encode()).decode()


def planted(name: str) -> str:
    """The secret of one row; a word that stands nowhere else."""
    return f"planted0{name.replace('-', '0')}0word"


PLANTED = {name: planted(name) for name in (*FORMS, *FIELDS, "retry", "environment")}


class Site:
    """A folder of inputs with all secrets in it, and an overlay that uses them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.inputs = folder / "inputs"
        shutil.copytree(ROOT / "examples" / "single-node", self.inputs)
        (self.inputs / "README.md").unlink()
        self.texts = {name: form.format(planted(name)) for name, form in FORMS.items()}
        self._write_plan()
        self._write_objects()
        self._write_overlays()

    def _write_plan(self) -> None:
        """The plan, its Version, and annotations of both."""
        plan = yaml.safe_load((self.inputs / "upgradeplan.yaml").read_text())
        annotations = {f"example.com/note-{number}": text for number, text in enumerate(self.texts.values())}
        plan["metadata"]["annotations"] = {**annotations, _LAST: json.dumps(self.texts)}
        plan["spec"] = {"version": "v1.8.0"}
        version = yaml.safe_load((ROOT / "examples" / "three-node" / "version.yaml").read_text())
        version["metadata"] = {"name": "v1.8.0", "namespace": "harvester-system", "annotations": annotations}
        version["spec"]["isoURL"] = self.address
        (self.inputs / "upgradeplan.yaml").write_text(yaml.safe_dump(plan))
        (self.inputs / "version.yaml").write_text(yaml.safe_dump(version))

    @property
    def address(self) -> str:
        """An address with a secret wherever an address can have one."""
        queries = [text.partition("?")[2] for name, text in self.texts.items() if name.startswith("query-")]
        return f"https://me:{planted('address-password')}@h.example.com/x.iso?{'&'.join(queries)}"

    def _write_objects(self) -> None:
        objects = []
        for name, make in FIELDS.items():
            body = make(planted(name))
            body["metadata"]["name"] = name
            objects.append(body)
        config = _object("v1", "ConfigMap", annotations={f"a/{name}": text for name, text in self.texts.items()})
        config["metadata"]["name"], config["data"] = "texts", self.texts
        (self.inputs / "planted.yaml").write_text(
            yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [*objects, config]})
        )

    def _write_overlays(self) -> None:
        """A phase that makes an object of secrets, and one that waits for texts which have some."""
        self._write_overlay("overlay", {"exists": True})
        self._write_overlay("standing", {"matches": "^none$"})
        self._write_overlay("expecting", {"exists": True})
        phase = self.folder / "expecting" / "15-plant" / "phase.yaml"
        raw = yaml.safe_load(phase.read_text())
        secret = {"apiVersion": "v1", "kind": "Secret", "namespace": "default", "name": "secret-data"}
        expected = [{"field": {"path": "data.a", "equals": _encoded(planted("secret-data"))}}]
        raw["steps"][0]["gates"].append({"probe": {"object": secret, "all": expected}})
        phase.write_text(yaml.safe_dump(raw))

    def _write_overlay(self, folder: str, test: Mapping[str, Any]) -> None:
        where = self.folder / folder / "15-plant"
        where.mkdir(parents=True)
        gate = {
            "object": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "texts"},
            "all": [{"field": {"path": f'data["{name}"]', **test}} for name in self.texts],
        }
        phase = {
            "apiVersion": "templates.upgradeplan/v1",
            "kind": "Phase",
            "name": "Plant",
            "description": "Plants secrets.",
            "status": {"active": "Planting", "completed": "Planted"},
            "deletion": "free",
            "steps": [{"name": "CopySecret", "owned": ["texts.yaml.j2"], "gates": [{"probe": gate}]}],
        }
        made = _object("v1", "ConfigMap", namespace="harvester-system", data=self.texts)
        made["metadata"]["name"] = "planted"
        (where / "phase.yaml").write_text(yaml.safe_dump(phase))
        (where / "texts.yaml.j2").write_text(yaml.safe_dump(made))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(tmp_path_factory.mktemp("planted"))


KINDS = template_set().catalog.kinds


def _inputs(site: Site) -> Inputs:
    return read_inputs([str(site.inputs)])


def _of_kind(site: Site, kind: str) -> Body:
    """The only document of this kind."""
    inputs = _inputs(site)
    bodies = [inputs.plan.body if inputs.plan else {}, *(source.body for source in inputs.objects)]
    (found,) = (body for body in bodies if body["kind"] == kind)
    return found


def _embedded(site: Site) -> Cluster:
    """A cluster with all inputs in it."""
    cluster = EmbeddedCluster(SimulatedClock(START))
    cluster.seed([_of_kind(site, "UpgradePlan"), *(source.body for source in _inputs(site).objects)])
    return cluster.client()


def _nobody(address: str, port: int) -> datetime | None:
    raise OSError("nobody answers")


@contextmanager
def serving(body: bytes) -> Iterator[str]:
    """Base address of a server that gives one document."""

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Shell:
    """Runs a command of the program in the site's folder."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: object) -> tuple[int, str, str]:
        """The status, stdout and stderr."""
        status = run(["upgradeplan", *map(str, words)])
        printed = self._capsys.readouterr()
        return status, printed.out, printed.err

    def all(self, *words: object) -> str:
        _, out, err = self(*words)
        return out + err


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


Output = Callable[[Site, Shell, Path], str]
INPUTS = ("inputs", "--templates", "overlay")


def _render(site: Site, shell: Shell, work: Path) -> str:
    """stdout has manifests, which stay as they are."""
    return shell("render", *INPUTS)[2]


def _render_json(site: Site, shell: Shell, work: Path) -> str:
    _, out, err = shell("render", *INPUTS, "-o", "json")
    model = json.loads(out)
    assert model.pop("files")
    return json.dumps(model) + err


def _render_expectation(site: Site, shell: Shell, work: Path) -> str:
    """The index says which value a gate expects."""
    model = json.loads(shell("render", "inputs", "--templates", "expecting", "-o", "json")[1])
    assert "data.a of Secret default/secret-data is 'REDACTED'" in json.dumps(model["index"])
    return json.dumps(model["index"]) + shell.all("phases", "--templates", "expecting", "Plant", "-o", "json")


def _render_folder(site: Site, shell: Shell, work: Path) -> str:
    """Of the files just the index."""
    said = shell.all("render", *INPUTS, "--output-dir", work) + shell.all(
        "render", *INPUTS, "--output-dir", work, "--check", "-o", "json"
    )
    return said + next(work.glob("*/index.yaml")).read_text(encoding="utf-8")


def _render_release(site: Site, shell: Shell, work: Path) -> str:
    """An address among the arguments: what is said next repeats the command line."""
    with serving((site.inputs / "harvester-release.yaml").read_bytes()) as base:
        address = f"{base}/r.yaml?sig={planted('query-azure')}&x={planted('query-long')}"
        status, out, err = shell("render", *INPUTS, "--release", address, "--output-dir", work)
        assert (status, "next: " in out) == (0, True), err
        return out + err


def _unreachable_release(site: Site, shell: Shell, work: Path) -> str:
    address = f"http://127.0.0.1:1/r.yaml?token={planted('query-token')}"
    user = f"http://me:{planted('address-password')}@127.0.0.1:1/r.yaml"
    return shell.all("render", *INPUTS, "--release", address) + shell.all("render", *INPUTS, "--release", user)


def _compare(*words: str) -> Output:
    def compare(site: Site, shell: Shell, work: Path) -> str:
        status, out, err = shell("compare", "inputs", "--to-templates", "overlay", *words)
        assert (status, "Plant" in out) == (1, True), err
        return out + err

    return compare


def _command(*words: str) -> Output:
    return lambda site, shell, work: shell.all(*words)


def _rehearse(site: Site, shell: Shell, work: Path) -> str:
    """A whole upgrade, its journal, and the replay of that, which is the same."""
    journal = work / "journal.jsonl"
    status, out, err = shell("rehearse", *INPUTS, "--journal", journal)
    assert (status, "would succeed" in out) == (0, True), out
    assert REDACTED in journal.read_text(encoding="utf-8")
    replayed, told, refused = shell("explain", "--templates", "overlay", "--replay", journal)
    assert (replayed, refused) == (0, ""), told
    return out + err + told + journal.read_text(encoding="utf-8")


def _rehearse_what_stands(site: Site, shell: Shell, work: Path) -> str:
    """A plan that waits for values which it shows."""
    journal = work / "journal.jsonl"
    status, out, err = shell("rehearse", "inputs", "--templates", "standing", "-o", "json", "--journal", journal)
    assert (status, "data" in out) == (1, True), out
    replayed, told, refused = shell("explain", "--templates", "standing", "--replay", journal, "-o", "json")
    assert (replayed, refused) == (0, ""), told
    return out + err + told + journal.read_text(encoding="utf-8")


def _replay_with_other_templates(site: Site, shell: Shell, work: Path) -> str:
    """What was decided and what would be decided are both shown."""
    journal = work / "journal.jsonl"
    shell("rehearse", "inputs", "--templates", "standing", "--journal", journal)
    status, out, err = shell("explain", "--templates", "overlay", "--replay", journal)
    assert status == 1
    return out + err


def _facts(site: Site, shell: Shell, work: Path) -> str:
    cluster = _embedded(site)
    readings = Readings(cluster, KINDS, lambda: START, _nobody, {})
    plan = _of_kind(site, "UpgradePlan")
    collected = collect(DirectSource(cluster, KINDS), readings, plan, Redactor(packaged_rules()))
    return "".join(as_files(collected).values())


def _rounds(site: Site, shell: Shell, work: Path) -> str:
    """What the loop itself writes: log lines, events, and texts of the status."""
    stream = StringIO()
    log = redacted(json_lines(stream, lambda: START, LogLevel.DEBUG), Redactor(packaged_rules()))
    templates = open_template_set(read_templates([site.folder / "standing"]))
    rehearsal = replace(prepare(_inputs(site), templates, start=START), limit=timedelta(hours=4))
    rehearsal.play(RoundLog(log))
    events = [body for body in rehearsal.cluster.store.everything() if body["kind"] == "Event"]
    (plan,) = [body for body in rehearsal.cluster.store.everything() if body["kind"] == "UpgradePlan"]
    assert events
    assert "data" in stream.getvalue()
    status = {key: plan["status"][key] for key in ("conditions", "nodeUpgradeStatuses") if key in plan["status"]}
    return stream.getvalue() + json.dumps(events) + json.dumps(status)


def _diff(site: Site, shell: Shell, work: Path) -> str:
    """New objects are shown as a whole, and a changed one on both sides."""
    cluster = _embedded(site)
    rendered = assemble(_inputs(site), read_templates([site.folder / "overlay"])).render()
    phase = next(phase for phase in rendered.phases if phase.phase.name == "Plant")
    plan = _of_kind(site, "UpgradePlan")
    body = cluster.get(KINDS.row(plan["apiVersion"], "UpgradePlan").kind, ref_of(plan)).body
    writer = ObjectWriter(cluster=cluster, kinds=KINDS, schemas=packaged_schemas(), plan=Plan.of(body))
    tried = Tried(phase=phase, trials=try_phase(writer, phase, recorded={}, loans=()), waits_for={})
    found = diffs_of("up", [tried], rules=rules_from({}, packaged_rules()), schemas=packaged_schemas())
    shown = "".join(text.table(item) + text.details(item) for item in found)
    assert "create" in shown
    return shown + json.dumps(document.to_json("up", found))


def _wrong_yaml(value: str) -> Output:
    def wrong(site: Site, shell: Shell, work: Path) -> str:
        (work / "s.yaml").write_text(
            f"apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData:\n  a: {value}\n"
        )
        status, out, err = shell("validate", "inputs", work / "s.yaml")
        assert status == 2
        return out + err

    return wrong


def _dead_cluster(site: Site, shell: Shell, work: Path) -> str:
    """Credentials of a kubeconfig, and a proxy of the environment."""
    (work / "config").write_text(
        KUBECONFIG.replace("token: none", f"token: {planted('bearer')}, password: {planted('yaml')}")
    )
    words = ("--kubeconfig", work / "config")
    return "".join(shell.all(command, *words) for command in ("status", "explain", "diff", "facts", "approve"))


def _usage(site: Site, shell: Shell, work: Path) -> str:
    return shell.all("render", "--pasword", site.address) + shell.all("status", f"--token={planted('flag')}", "a", "b")


OUTPUTS: Mapping[str, Output] = {
    "render": _render,
    "render -o json": _render_json,
    "render of an expectation": _render_expectation,
    "render --output-dir": _render_folder,
    "render --release URL": _render_release,
    "render --release of nobody": _unreachable_release,
    "render --format kustomize": _command("render", *INPUTS, "--format", "kustomize", "--output-dir", "never"),
    "validate": _command("validate", *INPUTS),
    "validate -o json": _command("validate", *INPUTS, "-o", "json"),
    "phases --context": _command("phases", "ISODownload", "--context", *INPUTS),
    "phases --context -o json": _command("phases", "ISODownload", "--context", *INPUTS, "-o", "json"),
    "images": _command("images", *INPUTS, "-o", "json"),
    "compare": _compare(),
    "compare -o json": _compare("-o", "json"),
    "rehearse, its journal and its replay": _rehearse,
    "rehearse of what stands": _rehearse_what_stands,
    "replay that differs": _replay_with_other_templates,
    "facts": _facts,
    "diff": _diff,
    "log, events and conditions": _rounds,
    "kubeconfig and proxy": _dead_cluster,
    "wrong command line": _usage,
    "wrong YAML, a number": _wrong_yaml(f"!!int {planted('yaml')}"),
    "wrong YAML, a tag": _wrong_yaml(f"!{planted('yaml')} x"),
    "wrong YAML, quotes": _wrong_yaml(f'"{planted("yaml")}'),
    "wrong YAML, an alias": _wrong_yaml(f"*{planted('yaml')}"),
}
"""Every way out of the program; each row answers all the text that came out there."""


@pytest.mark.parametrize("name", OUTPUTS)
def test_no_output_shows_a_secret(
    name: str, site: Site, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(site.folder)
    for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(variable, f"http://me:{planted('environment')}@127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    shown = OUTPUTS[name](site, shell, tmp_path)
    found = [row for row, secret in PLANTED.items() if secret in shown or _encoded(secret).rstrip("=") in shown]
    assert shown
    assert found == [], f"{name} shows {', '.join(found)}"


OWN = "rosebud-of-the-site"
"""What the list of an overlay alone calls secret."""


@pytest.fixture
def own_list(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "examples" / "single-node", tmp_path / "inputs")
    write: Mapping[str, Any] = {
        "overlay/_redaction/own.yaml": {"kind": "RedactionRules", "names": ["callsign$"]},
        "overlay/15-wait/phase.yaml": {
            "kind": "Phase",
            "name": "Wait",
            "description": "Waits for a text.",
            "status": {"active": "Waiting", "completed": "Waited"},
            "deletion": "free",
            "steps": [{"name": "Look", "gates": [{"probe": _callsign("equals", f"{OWN}-expected")}]}],
        },
        "inputs/site.yaml": {"kind": "ConfigMap", "data": {"callsign": OWN}, "metadata": _CALLSIGN},
    }
    for name, body in write.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        version = "v1" if body["kind"] == "ConfigMap" else "templates.upgradeplan/v1"
        path.write_text(yaml.safe_dump({"apiVersion": version, **body}), encoding="utf-8")
    return tmp_path


_CALLSIGN = {"name": "site", "namespace": "default"}


def _callsign(test: str, value: str) -> Mapping[str, Any]:
    return {
        "object": {"apiVersion": "v1", "kind": "ConfigMap", **_CALLSIGN},
        "all": [{"field": {"path": "data.callsign", test: value}}],
    }


def test_the_list_of_an_overlay_holds_for_the_index_and_for_probes(
    own_list: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own_list)
    given = ("inputs", "--templates", "overlay")
    shown = shell.all("render", *given, "--output-dir", "tree") + shell.all("render", *given, "-o", "json")
    shown += next(own_list.glob("tree/*/index.yaml")).read_text(encoding="utf-8")
    rehearsed = shell.all("rehearse", "--quiet", *given)
    assert "data.callsign is 'REDACTED', expected 'REDACTED'" in rehearsed
    assert OWN not in shown + rehearsed


def test_the_paths_that_an_overlay_names_are_hidden_where_a_probe_quotes_them(
    own_list: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the object itself, and of a condition's message; in the report, the journal and its replay."""
    monkeypatch.chdir(own_list)
    rule = {"kinds": [{"apiVersion": "v1", "kind": "ConfigMap"}], "paths": ["data.callsign"]}
    addons = [{"apiVersion": "harvesterhci.io/v1beta1", "kind": "Addon"}]
    rule_of_addons = {"kinds": addons, "paths": ['status.conditions["*"].message']}
    rules = {"apiVersion": "templates.upgradeplan/v1", "kind": "RedactionRules", "kinds": [rule, rule_of_addons]}
    (own_list / "overlay" / "_redaction" / "own.yaml").write_text(yaml.safe_dump(rules), encoding="utf-8")
    _gate_on_a_condition(own_list)
    given = ("inputs", "--templates", "overlay")
    rehearsed = shell.all("rehearse", "--quiet", *given, "--journal", "journal.jsonl")
    assert "data.callsign is 'REDACTED', expected 'REDACTED'" in rehearsed
    assert "condition Radio is False (Quiet: REDACTED)" in rehearsed
    journal = (own_list / "journal.jsonl").read_text(encoding="utf-8")
    assert "condition Radio is False (Quiet: REDACTED" in journal
    replayed = shell.all("explain", "--replay", "journal.jsonl", *given[1:])
    assert OWN not in rehearsed + journal + replayed


def _gate_on_a_condition(folder: Path) -> None:
    """The other gate of the step waits for a condition that will never hold."""
    path = folder / "overlay" / "15-wait" / "phase.yaml"
    phase = yaml.safe_load(path.read_text(encoding="utf-8"))
    probe = {"object": {**_ADDON, "name": "radio"}, "all": [{"condition": {"type": "Radio", "status": "True"}}]}
    phase["steps"][0]["gates"].append({"probe": probe})
    path.write_text(yaml.safe_dump(phase), encoding="utf-8")
    metadata = {"name": "radio", "namespace": "default"}
    says = {"type": "Radio", "status": "False", "reason": "Quiet", "message": OWN}
    addon = {"apiVersion": _ADDON["apiVersion"], "kind": "Addon", "metadata": metadata}
    spec = {"enabled": False, "chart": "c", "repo": "r", "version": "1", "valuesContent": ""}
    body = {**addon, "spec": spec, "status": {"conditions": [says]}}
    (folder / "inputs" / "radio.yaml").write_text(yaml.safe_dump(body), encoding="utf-8")


_ADDON = {"apiVersion": "harvesterhci.io/v1beta1", "kind": "Addon", "namespace": "default"}


@pytest.mark.parametrize("wrong", ["metadata", "inputs", "templates"])
def test_the_list_of_an_overlay_holds_for_errors(
    wrong: str, own_list: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that end a command are printed last, and those of inputs come before the templates are loaded."""
    monkeypatch.chdir(own_list)
    plan = yaml.safe_load((own_list / "inputs" / "upgradeplan.yaml").read_text(encoding="utf-8"))
    if wrong == "metadata":
        plan["metadata"]["labels"] = {"callsign": f"{OWN} !"}
    if wrong == "inputs":
        plan["spec"]["force"] = f"callsign: {OWN}"
    if wrong == "templates":
        template = own_list / "overlay" / "15-wait" / "more.yaml.j2"
        template.write_text(f"{{{{ fail_here('callsign={OWN}') }}}}", encoding="utf-8")
    (own_list / "inputs" / "upgradeplan.yaml").write_text(yaml.safe_dump(plan), encoding="utf-8")
    for more in ((), ("-o", "json")):
        status, out, err = shell("validate", "inputs", "--templates", "overlay", *more)
        assert status == 2
        assert OWN not in out + err


def test_more_than_fifty_secrets_are_planted() -> None:
    assert len(PLANTED) > 50
    assert len(set(PLANTED.values())) == len(PLANTED)


def test_manifests_have_what_they_need_and_render_says_so(
    site: Site, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(site.folder)
    status, out, err = shell("render", *INPUTS)
    assert status == 0
    assert site.address in out
    assert (
        "warning: 20-iso-download/virtual-machine-image.yaml: spec.url: VirtualMachineImage "
        "harvester-system/hvst-upgrade-9s9cd-iso contains a credential\n"
    ) in err


def test_a_layout_for_git_is_refused_unless_secrets_are_allowed(
    site: Site, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(site.folder)
    words = ("render", *INPUTS, "--format", "kustomize", "--output-dir", tmp_path)
    status, out, err = shell(*words)
    assert (status, out, list(tmp_path.iterdir())) == (2, "", [])
    assert "and the layout kustomize is for a Git repository" in err
    assert shell(*words, "--allow-secrets")[0] == 0
    index = yaml.safe_load(next(tmp_path.glob("*/index.yaml")).read_text())
    image = {"file": "20-iso-download/virtual-machine-image.yaml", "field": "spec.url"}
    image["object"] = "VirtualMachineImage harvester-system/hvst-upgrade-9s9cd-iso"
    assert image in index["sensitiveFields"]


def test_what_was_redacted_is_not_rendered(
    site: Site, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No digest is made of a mark, and none could be approved."""
    monkeypatch.chdir(site.folder)
    version = yaml.safe_load((site.inputs / "version.yaml").read_text())
    (tmp_path / "version.yaml").write_text(yaml.safe_dump(Redactor(packaged_rules()).body(version)))
    status, out, err = shell("render", "inputs/upgradeplan.yaml", "--cluster", tmp_path / "version.yaml")
    assert (status, out) == (2, "")
    assert "spec.url: VirtualMachineImage" in err
    assert "would get a value that was redacted" in err
