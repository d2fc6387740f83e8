"""The manager's manifests: one source, and every way to install gives the same objects."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from controlplane import binaries
from support.installed import VERSION, by_default, installation, objects_of
from support.rendered_plans import ROOT, templates

from reconcile.install.installed_kinds import KINDS as INSTALLED
from reconcile.install.installer import NODE, is_ready
from reconcile.loop.overrides import overrides_of
from reconcile.schemas import packaged_schemas
from renderer.assemble import open_template_set
from renderer.catalog.checks import load_checks
from renderer.catalog.load import load_catalog
from renderer.cli.program import run
from renderer.errors import Problems
from renderer.files.templates import read_templates
from renderer.install.formats import FORMATS, Installation, one_file
from renderer.install.install_objects import install_files
from renderer.install.install_values import read_values
from renderer.install.overlay_rules import overlay_rules
from renderer.install.overlay_values import MOST, key_of, overlay_values
from renderer.install.prepare import prepare_installation
from renderer.model.ref import Body, Kind
from renderer.templating import Templates
from renderer.templating.go_templates import TranslationError, in_go
from renderer.validation import document_problems
from renderer.yaml_io import dump, parse

KINDS = load_catalog(templates(), document_problems).kinds
CLIENTS = pytest.mark.skipif(
    bool(binaries.missing(binaries.clients_dir(), binaries.CLIENTS)) and os.environ.get("CI") != "true",
    reason="helm and kubectl are not here; `make controlplane` fetches them",
)
VALUES = {
    "defaults": "",
    "one-node": "singleNode: true\n",
    "everything": """\
name: upgradeplan
namespace: upgrades
networkPolicy: {enable: true}
prometheus: {enable: true}
metrics: {certificateSecret: metrics}
rbacHelpers: {enable: true}
crd: {keep: false}
manager:
  replicas: 3
  image: {repository: registry.local/upgradeplan, tag: v1}
  imagePullSecrets: [{name: registry}]
  args: [--leader-elect, "--log-format=text"]
  env: [{name: UPGRADE_JOB_SERVICE_ACCOUNT, value: other}]
  tolerations: [{key: a, operator: Exists}]
  nodeSelector: {kubernetes.io/os: linux}
  affinity: {nodeAffinity: {}}
templates:
  75-Extra/phase.yaml: |
    a: <b> & "c" {{ d }} é \\u2028
  75-extra/a.yaml.j2: "{% if x %}"
rbac:
  rules:
    "": [{apiGroups: [""], resources: [pods], verbs: [list]}]
    harvester-system: [{apiGroups: [""], resources: [pods], verbs: [list]}]
""",
    "registry": """\
registry: {prefix: registry.example.com, pullSecrets: [one, two]}
toolkitTag: v1.8.1
manager: {imagePullSecrets: [{name: three}]}
""",
    "little": """\
crd: {enable: false}
deletionGuard: {enable: false}
manager: {replicas: 1}
metrics: {enable: false}
""",
    "stored-logs": """\
registry: {prefix: registry.example.com, pullSecrets: [one]}
manager:
  imagePullSecrets: [{name: two}]
  tolerations: [{key: a, operator: Exists}]
  nodeSelector: {kubernetes.io/os: linux}
singleNode: true
templates: {75-extra/a.yaml.j2: "a: b"}
logs: {plans: annotated, storage: {enable: true, size: 1Gi, storageClassName: fast}}
""",
    "plain-metrics": "metrics: {secure: false, port: 8080}\nprometheus: {enable: true, interval: 1m}\n",
}
"""Files of values that together take every branch of the templates."""


def of(text: str, name: str = "values.yaml") -> Installation:
    return installation(read_values(parse(text, name)))


def by_ref(objects: Any) -> dict[tuple[str, ...], Body]:
    found = {_ref(body): body for body in objects if body}
    assert found
    return found


def _ref(body: Body) -> tuple[str, ...]:
    return body["apiVersion"], body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]


def deployment(found: Installation) -> Mapping[str, Any]:
    (body,) = (body for file in found.files for body in file.objects if body["kind"] == "Deployment")
    return body


# ----------------------------------------------------------------------------------------------- one source, four ways


TELLING = ("defaults", "everything", "no-webhook", "stored-logs")
OTHER_VALUES = pytest.mark.full("a chart of other values; those by default, all, and no webhook stand for them")


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The chart as the command writes it."""
    folder = tmp_path_factory.mktemp("chart") / "chart"
    assert run(["upgradeplan", "install", "--format", "helm-chart", "--output-dir", str(folder)]) == 0
    return folder


@CLIENTS
@pytest.mark.parametrize(
    "values",
    [pytest.param(name, marks=[] if name in TELLING else [OTHER_VALUES]) for name in (*VALUES, "no-webhook")],
)
@pytest.mark.slow
def test_helm_makes_of_the_chart_what_plain_is(values: str, chart: Path, tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    text = VALUES.get(values, "webhook: {enable: false}\nmetrics: {enable: false}\nnetworkPolicy: {enable: true}\n")
    file.write_text(text, encoding="utf-8")
    rendered = client("helm", "template", "any", str(chart), "--no-hooks", "--values", str(file))
    assert by_ref(yaml.safe_load_all(rendered)) == by_ref(yaml.safe_load_all(one_file(of(text))))


@pytest.mark.slow
@CLIENTS
def test_helm_finds_nothing_wrong_with_the_chart(chart: Path) -> None:
    assert "0 chart(s) failed" in client("helm", "lint", "--strict", str(chart))


@CLIENTS
def test_helm_refuses_values_that_the_schema_refuses(chart: Path) -> None:
    with pytest.raises(AssertionError, match="replica"):
        client("helm", "template", "any", str(chart), "--set", "manager.replica=1")


@pytest.mark.slow
@CLIENTS
def test_a_chart_of_values_of_ones_own_has_them_as_defaults(tmp_path: Path) -> None:
    found = of(VALUES["everything"])
    for path, text in FORMATS["helm-chart"](found).items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    rendered = client("helm", "template", "any", str(tmp_path), "--no-hooks")
    assert by_ref(yaml.safe_load_all(rendered)) == by_ref(yaml.safe_load_all(one_file(found)))


@pytest.mark.slow
@CLIENTS
def test_a_kustomization_builds_what_plain_is(tmp_path: Path) -> None:
    assert run(["upgradeplan", "install", "--format", "kustomize", "--output-dir", str(tmp_path / "base")]) == 0
    built = client("kubectl", "kustomize", str(tmp_path / "base"))
    assert by_ref(yaml.safe_load_all(built)) == by_ref(objects_of())


def test_the_chart_keeps_comments_and_reads_like_one(chart: Path) -> None:
    text = (chart / "templates" / "disruption-budget.yaml").read_text(encoding="utf-8")
    assert text.startswith("# While nodes are drained one manager stays.")
    assert "{{- if and (not .Values.singleNode) (gt (int .Values.manager.replicas) 1) }}\n" in text
    assert (chart / "values.yaml").read_text() == (ROOT / "templates" / "install" / "values.yaml").read_text()


@pytest.mark.parametrize(
    ("jinja", "go"),
    [
        ("{{ values.a.b | quote }}", "{{ .Values.a.b | toJson }}"),
        ('{{ (values.a ~ "-x") | quote }}', '{{ print .Values.a "-x" | toJson }}'),
        ("{% if values.a or not values.b %}", "{{- if or .Values.a (not .Values.b) }}"),
        ('{% if values.a == "x" %}', '{{- if eq .Values.a "x" }}'),
        (
            "{% for a in values.b %}{{ a | quote }}{{ values.c | quote }}{% endfor %}{{ values.c | quote }}",
            "{{- range $a := .Values.b }}{{ $a | toJson }}{{ $.Values.c | toJson }}{{- end }}{{ .Values.c | toJson }}",
        ),
        ('{{ values.a | join(",") | quote }}', '{{ .Values.a | join "," | toJson }}'),
        ("{# a note #}", "{{- /* a note */}}"),
    ],
)
def test_a_template_in_go(jinja: str, go: str) -> None:
    assert in_go(jinja) == go


@pytest.mark.parametrize(
    "text", ["{{ plan.name | quote }}", "{{ values.a | upper }}", "{% set a = 1 %}", "{{ 1 + 1 }}"]
)
def test_a_chart_is_not_guessed(text: str) -> None:
    with pytest.raises(TranslationError):
        in_go(text)


def test_an_addon(tmp_path: Path) -> None:
    text = "addon: {repo: 'https://charts.example.com', version: 0.2.0}\nsingleNode: true\nmanager: {replicas: 2}\n"
    (addon,) = parse(FORMATS["addon"](of(text))["addon.yaml"], "addon.yaml")
    assert addon.value["metadata"]["name"] == "harvester-upgrade-manager"
    assert addon.value["metadata"]["labels"]["addon.harvesterhci.io/experimental"] == "true"
    assert addon.value["spec"] == {
        "enabled": False,
        "repo": "https://charts.example.com",
        "chart": "harvester-upgrade-manager",
        "version": "0.2.0",
        "valuesContent": "singleNode: true\n",
    }


def test_an_addon_needs_a_repository() -> None:
    with pytest.raises(Problems, match=r"addon\.repo: is empty"):
        FORMATS["addon"](by_default())


# ---------------------------------------------------------------------------------------------------- what is installed


def test_what_is_installed_by_default() -> None:
    """Kinds that every cluster of v1.7.1 serves, in the order of creation. No Namespace: to delete these manifests must
    not delete harvester-system."""
    kinds = [document.value["kind"] for document in parse(one_file(by_default()), "install.yaml")]
    assert list(dict.fromkeys(kinds)) == [
        *("CustomResourceDefinition", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
        *("Service", "PodDisruptionBudget", "Deployment"),
        *("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration"),
    ]


def test_every_object_says_whose_it_is() -> None:
    found = of(VALUES["everything"])
    labels = [body["metadata"]["labels"] for file in found.files for body in file.objects]
    assert {label["app.kubernetes.io/part-of"] for label in labels} == {"upgradeplan"}
    assert {label["app.kubernetes.io/name"] for label in labels} == {"upgradeplan"}
    assert all(_has_name(body) for file in found.files for body in file.objects)


def _has_name(body: Body) -> bool:
    """Another name is enough to stand beside an installation: there is one definition only."""
    return str(body["metadata"]["name"]).startswith("upgradeplan")


def test_the_deployment_that_documents_name() -> None:
    body = deployment(by_default())
    assert body["metadata"]["name"] == "harvester-upgrade-manager-controller-manager"
    assert body["metadata"]["namespace"] == "harvester-system"
    assert body["metadata"]["labels"]["app.kubernetes.io/name"] == "harvester-upgrade-manager"
    pod = body["spec"]["template"]
    assert body["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    (container,) = pod["spec"]["containers"]
    assert container["image"] == f"upgradeplan:{VERSION}"
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["spec"]["securityContext"]["runAsUser"] == 65532
    assert "cpu" not in container["resources"]["limits"]


def test_managers_are_spread_and_go_last() -> None:
    """Two on one node would be drained together; nothing less important pushes a manager out."""
    pod = deployment(by_default())["spec"]["template"]
    assert pod["spec"]["priorityClassName"] == "system-cluster-critical"
    (spread,) = pod["spec"]["topologySpreadConstraints"]
    assert spread["topologyKey"] == "kubernetes.io/hostname"
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"
    assert spread["labelSelector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()


def test_roles_for_people() -> None:
    """Each may at least what the one before it may, and none may write the status, which is the manager's."""
    found = of("rbacHelpers: {enable: true}\n")
    (all_of_them,) = (file.objects for file in found.files if file.name == "rbac-helpers")
    name = "harvester-upgrade-manager"
    roles = [role for role in all_of_them if not role["metadata"]["name"].endswith("-preflight")]
    assert [role["metadata"]["name"] for role in roles] == [f"{name}-viewer", f"{name}-editor", f"{name}-admin"]
    verbs = [set(role["rules"][0]["verbs"]) for role in roles]
    assert verbs[0] < verbs[1]
    assert verbs[2] == {"*"}
    assert all(role["rules"][1]["verbs"] == ["get"] for role in roles)
    assert not [file for file in by_default().files if file.name == "rbac-helpers"]


def tolerated(found: Installation) -> set[str]:
    return {item["key"] for item in deployment(found)["spec"]["template"]["spec"]["tolerations"]}


@pytest.mark.slow
def test_a_drained_node_is_left_and_the_only_one_is_not() -> None:
    cordoned = {"node.kubernetes.io/unschedulable", "kubevirt.io/drain"}
    assert tolerated(by_default()) & cordoned == set()
    assert tolerated(of("singleNode: true\n")) >= cordoned
    budgets = {
        name: [file for file in of(text).files if file.name == "disruption-budget"] for name, text in VALUES.items()
    }
    assert {name for name, found in budgets.items() if found} == {"defaults", "everything", "registry", "plain-metrics"}
    (budget,) = budgets["defaults"][0].objects
    assert budget["spec"]["maxUnavailable"] == 1
    assert deployment(of("singleNode: true\n"))["spec"]["replicas"] == 1


# -------------------------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("singlenode: true\n", "values.yaml:1: singlenode: unknown field 'singlenode'; did you mean 'singleNode'?"),
        ("\nmanager:\n  replicas: two\n", "values.yaml:3: manager.replicas: 'two' is not an integer"),
        ("name: Upper\n", "values.yaml:1: name: 'Upper'"),
        ("a: 1\n---\nb: 1\n", "values.yaml:3: holds 2 documents"),
        ("[]\n", "values.yaml:1: "),
    ],
)
def test_values_that_are_wrong(text: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(text)
    assert run(["upgradeplan", "install", "--format", "plain", "--values", str(file)]) == 2
    said = capsys.readouterr().err.replace(f"{tmp_path}/", "")
    assert said.startswith(expected)
    assert "remedy: " in said


def test_the_packaged_values_fit_the_schema_and_name_every_key_of_it() -> None:
    found = by_default()
    read_values(parse(found.defaults_text, "values.yaml"))
    schema = yaml.safe_load(found.schema)
    assert set(found.defaults) == set(schema["properties"]) - {"global"}
    assert set(found.defaults["manager"]) == set(schema["properties"]["manager"]["properties"])


def test_a_folder_keeps_what_others_have_put_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert run(["upgradeplan", "install", "--format", "plain", "--output-dir", str(tmp_path)]) == 2
    assert "notes.txt: was not written by an earlier run" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_file_that_is_no_longer_rendered_goes(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("rbacHelpers: {enable: true}\n")
    command = ["upgradeplan", "install", "--format", "kustomize", "--output-dir", str(tmp_path / "base")]
    assert run([*command, "--values", str(values)]) == 0
    assert (tmp_path / "base" / "rbac-helpers.yaml").exists()
    assert run(command) == 0
    assert not (tmp_path / "base" / "rbac-helpers.yaml").exists()


def test_the_next_command_is_of_this_installation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A release of the usual name may be another manager's, beside which this one is installed."""
    values = tmp_path / "values.yaml"
    values.write_text("namespace: ops\n")
    folder = str(tmp_path / "a chart")
    command = ["upgradeplan", "install", "--format", "helm-chart", "--output-dir", folder]
    assert run([*command, "--name", "upgradeplan", "--values", str(values)]) == 0
    assert capsys.readouterr().out.endswith(f"next: helm install -n ops upgradeplan '{folder}'\n")


# ----------------------------------------------------------------------------------------------- templates of one's own

OVERLAY = {"_kinds/more.yaml": "a: <b> {{ c }}\n", "values.yaml": "x: 1\n", "75-more/phase.yaml": "name: More\n"}


@pytest.fixture
def overlay(tmp_path: Path) -> Path:
    for path, text in OVERLAY.items():
        (tmp_path / "overlay" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "overlay" / path).write_text(text, encoding="utf-8")
    return tmp_path / "overlay"


def test_an_overlay_comes_back_out_of_the_mounted_config_map(overlay: Path, tmp_path: Path) -> None:
    found = prepare_installation(read_templates(), [overlay_values(read_templates([overlay]))], VERSION)
    (config_map,) = (body for file in found.files for body in file.objects if body["kind"] == "ConfigMap")
    (volume,) = (item for item in deployment(found)["spec"]["template"]["spec"]["volumes"] if "configMap" in item)
    mount(tmp_path / "mounted", config_map["data"], volume["configMap"]["items"])
    mounted = read_templates([tmp_path / "mounted"])
    assert {path: item.text for path, item in mounted.items() if not item.packaged} == OVERLAY


def mount(folder: Path, data: Mapping[str, str], items: list[Mapping[str, str]]) -> None:
    """As the kubelet does it: a folder of the moment, `..data` that leads there, and a link for each first part."""
    moment = folder / "..2026_11_29"
    for item in items:
        (moment / item["path"]).parent.mkdir(parents=True, exist_ok=True)
        (moment / item["path"]).write_text(data[item["key"]], encoding="utf-8")
    (folder / "..data").symlink_to(moment.name)
    for top in {item["path"].partition("/")[0] for item in items}:
        (folder / top).symlink_to(f"..data/{top}")


def test_one_value_has_registry_and_secrets_of_all_images_and_the_manager_is_told() -> None:
    """No object names an image without the registry; the loop reads the variables (`test_sealing.py`)."""
    found = of(VALUES["registry"])
    spec = deployment(found)["spec"]["template"]["spec"]
    assert spec["imagePullSecrets"] == [{"name": "one"}, {"name": "two"}, {"name": "three"}]
    told = {item["name"]: item.get("value") for item in spec["containers"][0]["env"]}
    assert overrides_of({name: text for name, text in told.items() if text}) == {
        "managerImage": f"registry.example.com/upgradeplan:{VERSION}",
        "imageRegistry": "registry.example.com",
        "imagePullSecrets": "one,two",
        "toolkitTag": "v1.8.1",
    }
    hooks = install_files(Templates(found.chart_tree), found.chart_tree, found.values, VERSION)
    texts = one_file(found) + "".join(dump(body) for file in hooks for body in file.objects)
    images = re.findall(rf"\S*upgradeplan:{re.escape(VERSION)}", texts)
    assert len(images) >= 2
    assert {image for image in images if not image.startswith("registry.example.com/")} == set()


def test_a_manager_restarts_for_other_templates(overlay: Path) -> None:
    before = overlay_values(read_templates([overlay]))
    (overlay / "values.yaml").write_text("x: 2\n")
    after = overlay_values(read_templates([overlay]))
    marks = [deployment(installation(each))["spec"]["template"]["metadata"]["annotations"] for each in (before, after)]
    assert marks[0] != marks[1]


def test_an_overlay_that_no_config_map_holds(overlay: Path) -> None:
    (overlay / "75-more" / "large.yaml.j2").write_text("x" * MOST)
    with pytest.raises(Problems, match=r"large\.yaml\.j2: the templates have 1,048,\d+ bytes"):
        overlay_values(read_templates([overlay]))


def test_file_names_that_no_config_map_holds(overlay: Path) -> None:
    (overlay / "75-more" / "a b.yaml.j2").write_text("x")
    (overlay / "75-more__phase.yaml").write_text("x")
    with pytest.raises(Problems) as caught:
        overlay_values(read_templates([overlay]))
    said = [problem.message for problem in caught.value.problems]
    assert len(said) == 2
    assert key_of("75-more/phase.yaml") == "75-more__phase.yaml"


def test_an_overlay_that_does_not_hold_together_is_not_installed(
    overlay: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["upgradeplan", "install", "--format", "plain", "--templates", str(overlay)]) == 2
    assert "75-more/phase.yaml" in capsys.readouterr().err


def client(name: str, *arguments: str) -> str:
    """What helm or kubectl print; an AssertionError with their own words where they fail."""
    program = binaries.clients_dir() / name
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# ------------------------------------------------------------------------------------ permissions of an overlay's own


def rules_for(tree: Any, granted: Any = None) -> Any:
    template_set = open_template_set(tree)
    checks = load_checks(tree, document_problems, template_set.catalog.kinds)
    return overlay_rules(template_set.catalog, checks, tree, objects_of() if granted is None else granted)


def test_what_is_packaged_needs_no_more_than_the_roles_of_an_installation() -> None:
    """The other way round it is proven by upgrades: the audit log has no permission unused."""
    assert rules_for(read_templates()) == {}
    assert set(rules_for(read_templates(), granted=())) >= {"", "harvester-system", "fleet-local", "longhorn-system"}


PHASE = """\
apiVersion: templates.upgradeplan/v1
kind: Phase
name: More
description: One more.
status: {active: MoreBegun, completed: MoreDone}
deletion: careful
steps:
- name: Own
  owned: [{file: policy.yaml.j2}]
  borrowed: [{file: storage.yaml.j2, return: never}]
  gates:
  - {probe: {every: {apiVersion: v1, kind: Pod, namespace: my-apps}, all: [{builtin: true}]}}
  - probe:
      object: {apiVersion: v1, kind: Secret, namespace: my-apps, name: key}
      all: [{field: {path: metadata.uid, exists: true}}]
"""
POLICY = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ name('x') | quote }}
  namespace: my-apps
"""
STORAGE = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata:\n  name: longhorn\n  annotations: {a: b}\n"


def write_more(folder: Path) -> None:
    (folder / "75-more").mkdir()
    for name, text in {"phase.yaml": PHASE, "policy.yaml.j2": POLICY, "storage.yaml.j2": STORAGE}.items():
        (folder / "75-more" / name).write_text(text)


def test_an_overlay_gets_the_rules_that_its_manifests_and_probes_need(tmp_path: Path) -> None:
    write_more(tmp_path)
    found = rules_for(read_templates([tmp_path]))
    assert found == {
        "": [{"apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"], "verbs": ["watch", "patch"]}],
        "my-apps": [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["watch"]},
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["key"], "verbs": ["get"]},
            {
                "apiGroups": ["policy"],
                "resources": ["poddisruptionbudgets"],
                "verbs": ["watch", "create", "patch", "delete"],
            },
        ],
    }


def test_the_command_ships_an_overlay_with_its_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_more(tmp_path)
    assert run(["upgradeplan", "install", "--format", "plain", "--templates", str(tmp_path)]) == 0
    found = by_ref(document.value for document in parse(capsys.readouterr().out, "stdout"))
    data = found["v1", "ConfigMap", "harvester-system", "harvester-upgrade-manager-templates"]["data"]
    assert set(data) == {"75-more__phase.yaml", "75-more__policy.yaml.j2", "75-more__storage.yaml.j2"}
    role = found["rbac.authorization.k8s.io/v1", "Role", "my-apps", "harvester-upgrade-manager-templates"]
    assert ["secrets"] in [rule["resources"] for rule in role["rules"]]


# ------------------------------------------------------------------------------------------------------- its objects


@pytest.mark.parametrize("kind", [*INSTALLED.values(), NODE], ids=lambda kind: kind.kind)
def test_a_kind_of_an_installation_is_served_as_the_kinds_table_says(kind: Kind) -> None:
    """Where the table has it: an installation has kinds that no upgrade touches."""
    if row := KINDS.find(kind.api_version, kind.kind):
        assert row.kind == kind


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}, True),
        ({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}, False),
        ({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 2, "availableReplicas": 2}, False),
        ({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 2}, False),
        ({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 1}, False),
        ({}, False),
    ],
)
def test_install_waits_until_the_deployment_is_ready(status: Body, ready: bool) -> None:
    metadata = {"name": "manager", "namespace": "harvester-system", "generation": 2}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": 2}}
    assert is_ready({**body, "status": status}, KINDS, packaged_schemas(), datetime(2026, 1, 1, tzinfo=UTC)) is ready
