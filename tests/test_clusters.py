"""Many clusters: each is rendered to its own folder, and waves say which go when."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.answer_schemas import validator
from support.rendered_plans import ROOT
from test_cli import Ended, Shell, shell

from renderer.clusters.wave_choice import choose_clusters
from renderer.clusters.waves import Waves, waves_from
from renderer.model.document_type import RENDERED_CLUSTERS, WAVES
from renderer.validation import document_problems
from renderer.yaml_io import dump, parse

__all__ = ["shell"]

EXAMPLE = ROOT / "examples" / "single-node"
OWN = ("nodes.yaml", "settings.yaml")
SHARED = ("harvester-release.yaml", "image.yaml")
TEMPLATE = """\
apiVersion: management.harvesterhci.io/v1beta1
kind: UpgradePlan
metadata:
  name: {{ (cluster.name ~ "-v1-8-0") | quote }}
spec:
  image: {{ values.image | quote }}
"""
PULLED = ("--format", "fleet", "--format", "argocd", "--format", "flux", "--repo", "https://git.example.com/sites.git")
Wave = Mapping[str, Any]


def waves_text(*waves: Wave) -> str:
    return dump(WAVES.document({"name": "v1-8-0", "waves": list(waves)}))


CANARY: Wave = {"name": "canary", "clusters": ["lab"]}
REST: Wave = {"name": "rest", "rest": True, "pause": "manual"}


def write_clusters(folder: Path, names: Sequence[str], *waves: Wave) -> Path:
    """Clusters as the single-node example, whose plans come of a template."""
    for name in names:
        (folder / name).mkdir(parents=True)
        for file in OWN:
            shutil.copy(EXAMPLE / file, folder / name)
        values = {"labels": {"site": name}, "values": {"image": "harvester-v1-8-0-rc5-amd64"}}
        header = {"apiVersion": "upgradeplan/v1", "kind": "ClusterValues"}
        (folder / name / "cluster.yaml").write_text(dump({**header, **values}))
    for file in SHARED:
        shutil.copy(EXAMPLE / file, folder)
    (folder / "upgradeplan.yaml.j2").write_text(TEMPLATE)
    if waves:
        (folder / "waves.yaml").write_text(waves_text(*waves))
    return folder


@pytest.fixture
def clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_clusters(Path("in"), ["lab", "north", "south"], CANARY, REST)


def render(shell: Shell, *words: str) -> Ended:
    return shell("render", "--clusters", "in", "--output-dir", "out", "--jobs", "1", *words)


def changes(answer: Ended) -> dict[str, int]:
    """Numbers of files that were written, by folder."""
    model = json.loads(answer.out)
    validator("render").validate(model)
    rows = [*model["clusters"], model["rollout"], *model["gone"]]
    counts = {row["folder"]: sum(row["changes"][word] for word in ("missing", "changed", "stale")) for row in rows}
    return {folder: count for folder, count in counts.items() if count}


# ------------------------------------------------------------------------------------------------------ the folders


@pytest.mark.slow
def test_each_cluster_has_the_folder_that_a_rendering_of_its_own_would_have(shell: Shell, clusters: Path) -> None:
    assert render(shell).status == 0
    (clusters / "lab" / "upgradeplan.yaml").write_text(
        TEMPLATE.replace('{{ (cluster.name ~ "-v1-8-0") | quote }}', "lab-v1-8-0").replace(
            "{{ values.image | quote }}", "harvester-v1-8-0-rc5-amd64"
        )
    )
    shared = [str(clusters / file) for file in SHARED]
    assert shell("render", str(clusters / "lab"), *shared, "--output-dir", "alone").status == 0
    found, alone = (tree(Path(folder)) for folder in ("out/clusters/lab/lab-v1-8-0", "alone/lab-v1-8-0"))
    assert found == alone


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_only_what_has_changed_is_written(shell: Shell, clusters: Path) -> None:
    assert len(changes(render(shell, *PULLED, "-o", "json"))) == 4
    assert changes(render(shell, "-o", "json")) == {}, "the agents are remembered"
    values = clusters / "north" / "cluster.yaml"
    plan = TEMPLATE.replace("spec:", "spec:\n  restoreVM: {{ values.restore | default(false) | tojson }}")
    (clusters / "upgradeplan.yaml.j2").write_text(plan.replace(" | default(false) | tojson", " | quote"))
    for name in ("lab", "south"):
        path = clusters / name / "cluster.yaml"
        path.write_text(path.read_text().replace("values:", "values:\n  restore: false"))
    values.write_text(values.read_text().replace("values:", "values:\n  restore: true"))
    assert {*changes(render(shell, "-o", "json"))} >= {"clusters/north/north-v1-8-0", "rollout"}


@pytest.mark.slow
def test_check_says_what_is_stale_and_writes_nothing(shell: Shell, clusters: Path) -> None:
    render(shell)
    assert render(shell, "--check").status == 0
    before = tree(Path("out"))
    image = clusters / "south" / "cluster.yaml"
    image.write_text(image.read_text().replace("harvester-v1-8-0-rc5-amd64", "another"))
    answer = render(shell, "--check")
    assert (answer.status, tree(Path("out"))) == (1, before)
    assert "clusters/south/south-v1-8-0: changed index.yaml" in answer.out
    assert "clusters/north" not in answer.out


@pytest.mark.slow
def test_the_folder_of_a_cluster_that_is_gone_is_removed(shell: Shell, clusters: Path) -> None:
    render(shell)
    (kept := Path("out/clusters/south/south-v1-8-0/notes.txt")).write_text("mine")
    shutil.rmtree(clusters / "south")
    assert render(shell, "--check").status == 1
    assert render(shell).status == 0
    assert [path for path in Path("out/clusters/south").rglob("*") if path.is_file()] == [kept]
    assert render(shell, "--check").status == 0


@pytest.mark.slow
def test_processes_render_what_one_renders(shell: Shell, clusters: Path) -> None:
    assert render(shell).status == 0
    for number in range(15):
        shutil.copytree(clusters / "north", clusters / f"site-{number}")
    assert render(shell).status == 0
    words = ("render", "--clusters", "in", "--output-dir", "out", "--jobs", "2", "--check")
    assert shell(*words).status == 0


# ------------------------------------------------------------------------------------------------------- what counts


@pytest.mark.slow
def test_a_plan_and_a_release_of_its_own_count_before_those_of_all(shell: Shell, clusters: Path) -> None:
    shutil.copy(EXAMPLE / "upgradeplan.yaml", clusters / "lab")
    release = (clusters / SHARED[0]).read_text()
    (clusters / "lab" / SHARED[0]).write_text(release.replace("harvester: v1.8.0-rc5", "harvester: v1.8.0-rc9"))
    assert render(shell).status == 0
    assert "rc9" in "".join(tree(Path("out/clusters/lab/hvst-upgrade-9s9cd")).values())
    assert "rc9" not in "".join(tree(Path("out/clusters/north")).values())


@pytest.mark.slow
def test_a_release_that_is_named_counts_for_all(shell: Shell, clusters: Path) -> None:
    text = (clusters / SHARED[0]).read_text()
    Path("other.yaml").write_text(text.replace("harvester: v1.8.0-rc5", "harvester: v1.8.0-rc9"))
    assert render(shell, "--release", "other.yaml").status == 0
    assert all("rc9" in "".join(tree(path).values()) for path in Path("out/clusters").iterdir())


def test_a_cluster_s_folder_can_be_given_to_other_commands(shell: Shell, clusters: Path) -> None:
    shutil.copy(EXAMPLE / "upgradeplan.yaml", clusters / "lab")
    assert shell("render", str(clusters / "lab")).status == 0


# ---------------------------------------------------------------------------------------------------------- problems


def test_all_problems_are_shown_at_once_with_cluster_file_and_line(shell: Shell, clusters: Path) -> None:
    (clusters / "lab" / "nodes.yaml").write_text("kind: Node\n")
    north = clusters / "north" / "cluster.yaml"
    north.write_text(north.read_text().replace("image:", "images:"))
    south = clusters / "south" / "cluster.yaml"
    south.write_text(south.read_text().replace("site: south", "site: [south]"))
    (clusters / "waves.yaml").write_text(waves_text(CANARY, {"name": "rest", "clusters": ["nroth"]}))
    answer = render(shell)
    assert (answer.status, Path("out").exists()) == (2, False)
    for text in (
        "in/lab/nodes.yaml:1: has no apiVersion, so it is not a Kubernetes object (cluster lab)",
        "in/upgradeplan.yaml.j2:6: values has no 'image'; did you mean 'images'? (cluster north)",
        "in/south/cluster.yaml:4: labels.site:",
        "in/waves.yaml:8: wave 'rest' names the cluster 'nroth', which has no folder; did you mean 'north'?",
        "in/waves.yaml: the clusters north, south are in no wave",
    ):
        assert text in answer.err


def test_what_is_wrong_in_all_clusters_is_said_once(shell: Shell, clusters: Path) -> None:
    (clusters / "upgradeplan.yaml.j2").write_text(TEMPLATE.replace("image: {{ values.image | quote }}", "image: 1"))
    answer = render(shell)
    assert answer.status == 2
    assert answer.err.count("spec.image") == 1
    assert "(clusters lab, north, south)" in answer.err


@pytest.mark.slow
def test_a_cluster_with_problems_stays_and_the_others_are_written(shell: Shell, clusters: Path) -> None:
    render(shell)
    before = tree(Path("out/clusters/lab")), tree(Path("out/rollout"))
    (clusters / "lab" / "nodes.yaml").write_text("kind: Node\n")
    (clusters / "upgradeplan.yaml.j2").write_text(TEMPLATE.replace("spec:", "spec:\n  restoreVM: true"))
    assert render(shell).status == 2
    assert (tree(Path("out/clusters/lab")), tree(Path("out/rollout"))) == before
    assert render(shell, "--check").status == 2


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("in/lab",), "FILES and FOLDERS are those of one"),
        (("--phase", "NodeUpgrade"), "--phase is for one cluster"),
        (("--through", "NodeUpgrade"), "--through is for one cluster"),
        (("--node", "a"), "--node is for one cluster"),
        (("--plan", "a"), "--plan is for one cluster"),
        (("--cluster", "a"), "--cluster is for one cluster"),
        (("--against", "a"), "--against is for one cluster"),
        (("--retry", "1"), "--retry is for one cluster"),
        (("--format", "flux", "--deliver", "phases"), "--deliver phases is for one cluster"),
    ],
)
def test_what_is_for_one_cluster_is_refused(shell: Shell, clusters: Path, words: tuple[str, ...], text: str) -> None:
    answer = render(shell, *words)
    assert (answer.status, clusters.exists()) == (2, True)
    assert text in answer.err


def test_a_folder_to_write_to_is_needed(shell: Shell, clusters: Path) -> None:
    assert "--clusters needs --output-dir" in shell("render", "--clusters", str(clusters)).err
    assert "--jobs is for --clusters" in shell("render", str(EXAMPLE), "--jobs", "2").err


def test_a_folder_without_clusters_is_refused(shell: Shell, tmp_path: Path) -> None:
    answer = shell("render", "--clusters", str(EXAMPLE), "--output-dir", str(tmp_path))
    assert (answer.status, "contains no folder of a cluster" in answer.err) == (2, True)


@pytest.mark.slow
def test_a_folder_that_cannot_be_a_cluster_s_is_named(shell: Shell, clusters: Path) -> None:
    (clusters / "Berlin_1").mkdir()
    assert "'Berlin_1' is not the name of a cluster" in render(shell).err


# ------------------------------------------------------------------------------------------------------------- waves


def chosen(labels: Mapping[str, Mapping[str, str]], *waves: Wave) -> tuple[dict[str, list[str]], list[str]]:
    """The clusters of each wave, and the messages of what is wrong."""
    found, problems = read_waves(*waves)
    assert found is not None, problems
    result, wrong = choose_clusters(found, labels)
    return {wave.name: list(wave.clusters) for wave in result}, [item.message for item in wrong]


def read_waves(*waves: Wave) -> tuple[Waves | None, list[str]]:
    found, problems = waves_from(parse(waves_text(*waves), "waves.yaml")[0])
    return found, [item.message for item in problems]


SITES = {f"c{number:02}": {"site": "north" if number < 4 else "south"} for number in range(10)}


def test_clusters_are_chosen_by_name_label_share_and_rest() -> None:
    found, wrong = chosen(
        SITES,
        {"name": "canary", "clusters": ["c09"]},
        {"name": "share", "percentage": 25},
        {
            "name": "north",
            "selector": {"matchExpressions": [{"key": "site", "operator": "NotIn", "values": ["south"]}]},
        },
        {"name": "second", "percentage": 10},
        {"name": "rest", "rest": True},
    )
    assert wrong == []
    assert found == {
        "canary": ["c09"],
        "share": ["c04", "c05", "c06"],
        "north": ["c00", "c01", "c02", "c03"],
        "second": ["c07"],
        "rest": ["c08"],
    }


@pytest.mark.parametrize(
    ("selector", "count"),
    [
        ({"matchLabels": {"site": "north"}}, 4),
        ({"matchExpressions": [{"key": "site", "operator": "In", "values": ["north", "south"]}]}, 10),
        ({"matchExpressions": [{"key": "site", "operator": "Exists"}]}, 10),
        ({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}, 10),
        ({"matchLabels": {"site": "north"}, "matchExpressions": [{"key": "zone", "operator": "DoesNotExist"}]}, 4),
    ],
)
def test_a_selector_is_that_of_kubernetes(selector: Mapping[str, Any], count: int) -> None:
    found, _ = chosen(SITES, {"name": "some", "selector": selector})
    assert len(found["some"]) == count


@pytest.mark.parametrize(
    ("waves", "messages"),
    [
        (
            [{"name": "a", "clusters": ["c00", "c01"]}, {"name": "b", "selector": {"matchLabels": {"site": "north"}}}],
            [
                "the cluster 'c00' is in the waves 'a' and 'b'; one is expected",
                "the cluster 'c01' is in the waves 'a' and 'b'; one is expected",
                "the clusters c04, c05, c06, c07, c08 and 1 more are in no wave",
            ],
        ),
        (
            [{"name": "a", "clusters": ["c00", "c00"]}, {"name": "b", "rest": True}],
            ["wave 'a' names the cluster 'c00' twice"],
        ),
        (
            [{"name": "a", "percentage": 100}, {"name": "b", "rest": True}],
            ["wave 'b' has no cluster"],
        ),
        (
            [{"name": "a", "selector": {"matchLabels": {"site": "west"}}}, {"name": "b", "rest": True}],
            ["wave 'a' has no cluster"],
        ),
        (
            [{"name": "a", "clusters": ["c000"]}, {"name": "b", "rest": True}],
            ["wave 'a' names the cluster 'c000', which has no folder; did you mean 'c00'?"],
        ),
        ([{"name": "a", "percentage": 90}], ["the cluster c09 is in no wave"]),
    ],
)
def test_a_cluster_is_in_one_wave_and_a_wave_has_one(waves: list[Wave], messages: list[str]) -> None:
    assert chosen(SITES, *waves)[1] == messages


@pytest.mark.parametrize(
    ("waves", "message"),
    [
        ([{"name": "a"}], "wave 'a' has none of clusters, selector, percentage, rest"),
        ([{"name": "a", "rest": True, "percentage": 3}], "wave 'a' has percentage and rest"),
        ([{"name": "a", "rest": True}, {"name": "b", "rest": True}], "a second wave has the rest"),
        ([{"name": "a", "rest": True}, {"name": "a", "percentage": 3}], "duplicate wave 'a'"),
        ([{"name": "a", "rest": True, "pause": "soon"}], "'soon' does not match"),
        ([{"name": "a", "rest": True, "pause": "5"}], "'5' does not match"),
        ([{"name": "a", "percentage": 0}], "0"),
        ([{"name": "A b", "rest": True}], "A b"),
        (
            [{"name": "a", "selector": {"matchExpressions": [{"key": "x", "operator": "In"}]}}],
            "In takes at least one value",
        ),
        (
            [{"name": "a", "selector": {"matchExpressions": [{"key": "x", "operator": "Exists", "values": ["y"]}]}}],
            "Exists takes no values",
        ),
    ],
)
def test_waves_that_make_no_sense_are_refused(waves: list[Wave], message: str) -> None:
    found, messages = read_waves(*waves)
    assert found is None
    assert message in "\n".join(messages)


@pytest.mark.parametrize("pause", ["manual", "24h", "1h30m", "10m", "90s", "1h1m1s"])
def test_a_pause_is_a_time_or_somebody_s_word(pause: str) -> None:
    assert read_waves({"name": "a", "rest": True, "pause": pause})[1] == []


# ------------------------------------------------------------------------------------------------------------ agents


def of_agent(path: str) -> list[Any]:
    return list(yaml.safe_load_all((Path("out/rollout") / path).read_text()))


@pytest.mark.slow
def test_agents_need_waves(shell: Shell, clusters: Path) -> None:
    (clusters / "waves.yaml").unlink()
    assert render(shell).status == 0
    answer = render(shell, *PULLED)
    assert (answer.status, "in/waves.yaml: not found, and without waves agents" in answer.err) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["fleet", "argocd", "flux"])
def test_an_agent_without_a_clock_refuses_a_pause_of_a_time(shell: Shell, clusters: Path, agent: str) -> None:
    (clusters / "waves.yaml").write_text(waves_text(CANARY, {**REST, "pause": "24h"}))
    assert render(shell).status == 0
    answer = render(shell, "--format", agent)
    assert (answer.status, "wave 'rest' pauses for 24h, and" in answer.err) == (2, True)


@pytest.mark.slow
def test_argo_cd_is_given_one_applicationset_with_a_step_a_wave(shell: Shell, clusters: Path) -> None:
    assert render(shell, *PULLED).status == 0
    (found,) = of_agent("agents/argocd/applicationset.yaml")
    elements = found["spec"]["generators"][0]["list"]["elements"]
    assert [(item["cluster"], item["wave"]) for item in elements] == [
        ("lab", "canary"),
        ("north", "rest"),
        ("south", "rest"),
    ]
    assert all((Path() / item["path"] / "upgradeplan.yaml").is_file() for item in elements)
    steps = found["spec"]["strategy"]["rollingSync"]["steps"]
    assert [step["matchExpressions"][0]["values"] for step in steps] == [["canary"], ["rest"]]
    assert [step.get("maxUpdate") for step in steps] == [None, 0]
    (project,) = of_agent("agents/argocd/appproject.yaml")
    assert [item["name"] for item in project["spec"]["destinations"]] == ["lab", "north", "south"]
    (settings,) = of_agent("agents/argocd/argocd-cm.patch")
    assert "resource.customizations.health.management.harvesterhci.io_UpgradePlan" in settings["data"]


@pytest.mark.slow
def test_flux_is_given_a_kustomization_a_cluster_and_one_between_waves(shell: Shell, clusters: Path) -> None:
    assert render(shell, *PULLED).status == 0
    lab, between, north, south = (item["spec"] for item in of_agent("agents/flux/kustomizations.yaml"))
    assert lab["kubeConfig"] == {"secretRef": {"name": "lab-kubeconfig"}}
    assert "dependsOn" not in lab
    assert (between["dependsOn"], between["suspend"]) == ([{"name": "v1-8-0-cluster-lab"}], True)
    assert north["dependsOn"] == south["dependsOn"] == [{"name": "v1-8-0-before-rest"}]
    assert all((Path() / item["path"] / "kustomization.yaml").is_file() for item in (lab, between, north, south))
    assert "'Succeeded'" in north["healthCheckExprs"][0]["current"]


@pytest.mark.slow
def test_fleet_is_given_a_bundle_of_partitions_and_a_paused_one_after_a_pause(shell: Shell, clusters: Path) -> None:
    waves = [CANARY, {"name": "next", "clusters": ["north"]}, REST]
    (clusters / "waves.yaml").write_text(waves_text(*waves))
    assert render(shell, *PULLED).status == 0
    first, second = (item["spec"] for item in of_agent("agents/fleet/gitrepos.yaml"))
    assert [item["clusterGroup"] for item in first["targets"]] == ["v1-8-0-canary", "v1-8-0-next"]
    assert ("paused" in first, second["paused"]) == (False, True)
    groups = {item["metadata"]["name"]: item["spec"] for item in of_agent("agents/fleet/clustergroups.yaml")}
    assert groups["v1-8-0-rest"]["selector"]["matchExpressions"][0]["values"] == ["south"]
    (bundle,) = list(yaml.safe_load_all((Path(first["paths"][0]) / "fleet.yaml").read_text()))
    assert (bundle["helm"]["waitForJobs"], bundle["helm"]["timeoutSeconds"] > 0) == (True, True)
    strategy = bundle["rolloutStrategy"]
    assert strategy["maxUnavailablePartitions"] == 0
    assert [(item["name"], item["maxUnavailable"]) for item in strategy["partitions"]] == [("canary", 0), ("next", 0)]
    for item in bundle["targetCustomizations"]:
        place = Path(first["paths"][0]) / item["kustomize"]["dir"]
        name = item["clusterSelector"]["matchLabels"]["management.cattle.io/cluster-display-name"]
        jobs = [body for body in yaml.safe_load_all(tree(place)["gate.yaml.txt"]) if body["kind"] == "Job"]
        assert [body["metadata"]["name"] for body in jobs] == [item["diff"]["comparePatches"][0]["name"]]
        assert (
            tree(place)["upgradeplan.yaml"] == tree(Path("out/clusters") / name)[f"{name}-v1-8-0/plan/upgradeplan.yaml"]
        )


@pytest.mark.slow
def test_nothing_that_all_clusters_share_is_in_the_folder_of_one(shell: Shell, clusters: Path) -> None:
    render(shell, *PULLED)
    assert not [path for path in Path("out/clusters").rglob("*") if path.name == "agents"]


@pytest.mark.slow
def test_the_index_fits_its_schema(shell: Shell, clusters: Path) -> None:
    render(shell, *PULLED)
    document = parse(Path("out/rollout/index.yaml").read_text(), "index.yaml")[0]
    assert document_problems(document, RENDERED_CLUSTERS) == []
    assert {*document.value["files"], "index.yaml"} == {*tree(Path("out/rollout"))}


@pytest.mark.slow
def test_a_page_for_a_pull_request_has_waves_and_clusters(shell: Shell, clusters: Path) -> None:
    answer = render(shell, "-o", "markdown")
    assert answer.out.startswith("### Upgrade of 3 clusters: v1-8-0\n")
    assert "| <code>rest</code> | manual | 2 |" in answer.out
    assert "| <code>north</code> | <code>north-v1-8-0</code> | rest |" in answer.out
