"""Whatever a plan, a release or a node name holds, it is rendered as data or refused with a problem.

The inputs go the way of a user's: YAML text, read, judged, rendered. What is rendered must be read back the same by a
reader with Go's rules and by one of YAML 1.2.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from support.examples import examples
from support.rendered_plans import (
    PREFIX,
    Json,
    Rendered,
    image_lists,
    inputs_of,
    machine,
    machine_plan,
    node,
    plan,
    release,
    render,
    server_version,
    version,
)

from renderer.documents import recognize
from renderer.errors import Problem, Problems
from renderer.input_rules import input_problems
from renderer.layout.trees import INDEX
from renderer.model.path import walk
from renderer.names import NAME_LIMIT
from renderer.source_document import without_lines
from renderer.yaml_io import dump, parse

pytestmark = pytest.mark.slow

BOUNDED = settings(
    deadline=None, max_examples=examples(30), suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
RUN_TIME = "<known at run time: "

RETYPED = (
    *(
        "1.10",
        "no",
        "NO",
        "y",
        "Y",
        "on",
        "off",
        "yes",
        "true",
        "null",
        "Null",
        "~",
        "0x10",
        "0o17",
        "017",
        "08",
        "1e3",
    ),
    *("5319e7", "12:30:00", "190:20:30", "2026-01-15", "2026-01-15T10:00:00Z", ".inf", "-.INF", ".nan", "1_000", "+1"),
    *("-1", "1.", ".5", "0b1", "=", "<<", "1,000", "0.1.2", "6E5", "1e1000", "+.e3", "'", '"', ""),
)
"""Text that one reader or another takes for something else."""

HOSTILE = (
    *("a: b", "a #b", "- a", "[a", "{a: b", "&a", "*a", "!a", "|", ">", "%YAML 1.1", "---", "...", "--- a", "@a", "`a"),
    *("? a", "a\nb", "a\n  b: c", "\n---\nkind: Pod\n", "a\r\nb", "a\tb", " a", "a ", "{{ 7 * 7 }}", "{% raw %}"),
    *("{# a #}", "}}", "{{", "${A}", "$(id)", "`id`", "'; rm -rf /", "a'b", 'a"b', "a\\b", "\\u0041", "&amp;", "<b>"),
    *("%s", "{0}", "\U0001f680", "\u00e9", "\ufb00", "a\u2028b", "a\u2029b", "a\u0085b", "\ufeffa", "a\u200bb"),
    *("\u202eabc", "a\x7fb", "a\x01b", "\x1b[31m", "x" * 300),
)
"""Text that would be structure, or a template, or an escape, if it were not quoted."""

texts = st.one_of(st.sampled_from(RETYPED), st.sampled_from(HOSTILE), st.text(max_size=12))
tag_texts = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,20}", fullmatch=True)
tags = st.one_of(tag_texts, tag_texts, st.sampled_from(RETYPED))
names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?)?", fullmatch=True)
node_names = st.one_of(
    names, st.sampled_from(("1", "0x10", "1e3", "5319e7", "no", "y", "null", "n.1", "a" * 63, "1.10"))
)
plan_names = st.from_regex(r"[a-z]([-a-z0-9]{0,56}[a-z0-9])?", fullmatch=True)
images = st.one_of(
    st.from_regex(r"[a-z0-9]+(\.[a-z]{2,3}(:[0-9]{2,5})?)?/[a-z0-9]+(-[a-z0-9]+)?", fullmatch=True), texts
)


@st.composite
def plans(draw: st.DrawFn, text: st.SearchStrategy[str] = texts) -> Json:
    """A plan with whatever a user can write into it."""
    optional: Mapping[str, st.SearchStrategy[Any]] = {
        "image": st.one_of(node_names, node_names, text),
        "upgrade": st.one_of(tags, tags, tags, text),
        "force": st.booleans(),
        "restoreVM": st.booleans(),
        "imagePreloadOption": st.fixed_dictionaries({}, optional={"concurrency": st.integers(-3, 5)}),
        "nodeUpgradeOption": st.fixed_dictionaries(
            {}, optional={"pauseNodes": st.lists(st.one_of(node_names, text), max_size=2, unique=True)}
        ),
    }
    spec: dict[str, Any] = draw(st.fixed_dictionaries({"version": text}, optional=optional))
    annotations = {"upgrade-toolkit-image": images} | dict.fromkeys(("min-certs-expiration-in-day", "own"), texts)
    drawn = draw(st.fixed_dictionaries({}, optional=annotations))
    annotated = {f"{PREFIX}{key}": value for key, value in drawn.items()}
    return plan(draw(plan_names), annotations=annotated, **spec)


@st.composite
def clusters(draw: st.DrawFn, text: st.SearchStrategy[str] = texts) -> tuple[Json, ...]:
    """A release, a Version and nodes, with the same sort of text in them."""
    found = draw(st.lists(node_names, min_size=1, max_size=2, unique=True))
    lists = st.lists(st.one_of(images, st.just("a/b:v1")).filter(lambda item: re.fullmatch(r"\S+", item)), max_size=3)
    joined = [
        document
        for number, name in enumerate(found)
        for document in (machine(f"m{number}", name), machine_plan(f"p{number}", f"m{number}"))
    ]
    return (
        release(draw(st.one_of(tags, text)), kubernetes=draw(text), os=draw(text), minUpgradableVersion=draw(text)),
        version(isoURL=draw(text), isoChecksum=draw(text)),
        server_version(draw(text)),
        *(node(name, witness=draw(st.sampled_from([None, None, "true", "false", ""]))) for name in found),
        *joined[: draw(st.integers(0, len(joined)))],
        image_lists(draw(lists), draw(lists) or ["a/b:v2"]),
    )


def attempt(documents: Sequence[Json], retry: int = 0) -> tuple[Rendered | None, tuple[Problem, ...]]:
    """What is rendered, or why it is refused. Any other exception is a bug."""
    try:
        found = render(inputs_of(documents), retry=retry)
        found.files()
    except Problems as refused:
        return None, refused.problems
    return found, ()


def rendered(documents: Sequence[Json]) -> Rendered | None:
    """None where it is refused, with words for each problem."""
    found, problems = attempt(documents)
    assert (found is None) == bool(problems)
    assert all(problem.message and problem.reason for problem in problems)
    return found


def bodies(found: Rendered) -> Iterator[tuple[str, Any]]:
    for manifest in found.plan.manifests():
        yield manifest.file, manifest.body


def assert_sound(found: Rendered) -> None:
    """Every file is read back by both readers as what it was rendered from; names and labels can be taken."""
    by_file: dict[str, list[Any]] = {}
    for file, body in bodies(found):
        by_file.setdefault(file, []).append(body)
        assert_named(found, body)
    for file, text in found.files().items():
        read = [document.value for document in parse(text, file)]
        assert file == INDEX or read == by_file[file]
        assert read_as_yaml_1_2(text, file) in (read, None)
        assert text.endswith("\n")
        assert "\r" not in text


_READ: set[str] = set()


def read_as_yaml_1_2(text: str, file: str) -> list[Any] | None:
    """None where the same text was read before: this reader takes its time, and most files are often the same. Of an
    index, which is long and has the words of all others, every twentieth is read."""
    if text in _READ or (file == INDEX and zlib.crc32(text.encode()) % 20):
        return None
    _READ.add(text)
    return list(yaml_1_2().load_all(text))


def assert_named(found: Rendered, body: Any) -> None:
    metadata = body["metadata"]
    name = metadata["name"]
    ours = not name.startswith(RUN_TIME) and f"{PREFIX}upgrade-plan" in metadata.get("labels", {})
    assert name.startswith(RUN_TIME) or NAME.fullmatch(name)
    assert not ours or len(name) <= NAME_LIMIT
    for path, value in walk(body):
        if "labels" in path or "matchLabels" in path:
            assert isinstance(value, str)
            assert LABEL.fullmatch(value)
            assert len(value) <= NAME_LIMIT


def yaml_1_2() -> YAML:
    """Pure: by the rules of YAML 1.2 and by other code than libyaml."""
    reader = YAML(typ="safe", pure=True)
    reader.version = (1, 2)
    return reader


# --------------------------------------------------------------------------------------------------------- properties


@BOUNDED
@given(given_plan=plans(), cluster=clusters())
def test_what_is_accepted_is_rendered_soundly_or_refused(given_plan: Json, cluster: tuple[Json, ...]) -> None:
    if found := rendered((given_plan, *cluster)):
        assert_sound(found)


@BOUNDED
@given(given_plan=plans(text=tags), cluster=clusters(text=tags))
def test_what_is_harmless_is_rendered(given_plan: Json, cluster: tuple[Json, ...]) -> None:
    """Not all of it: two nodes may be witnesses, an image may be none. But never for the sake of how text looks."""
    found, problems = attempt((given_plan, *cluster))
    allowed = "a valid image reference|no non-witness managed nodes|is not one of|is empty|at least one of|is repeated"
    allowed += "|is not a name that a VirtualMachineImage|cannot be the (tag|repository) of the toolkit image"
    allowed += "|harvester: .* does not match"  # it becomes an image's tag
    assert [str(problem) for problem in problems if not re.search(allowed, str(problem))] == []
    if found:
        assert_sound(found)


@BOUNDED
@given(given_plan=plans(), cluster=clusters())
def test_the_inputs_mean_the_same_as_text(given_plan: Json, cluster: tuple[Json, ...]) -> None:
    """Written by the dumper and read from YAML, as from a file: no scalar is retyped on the way in."""
    documents = (given_plan, *cluster)
    assume("\\u0000" not in json.dumps(documents))  # no file can hold it, and reading one says so
    text = "---\n".join(dump(document) for document in documents)
    inputs, untold = recognize(parse(text, "given.yaml"))
    direct, told = recognize([without_lines(document, "given.yaml") for document in documents])
    from_text = [problem.reason for problem in (*untold, *input_problems(inputs))]
    assert sorted(from_text) == sorted(problem.reason for problem in (*told, *input_problems(direct)))
    assert inputs.plan
    assert direct.plan
    assert (inputs.plan.body, inputs.facts) == (direct.plan.body, direct.facts)
    assert [source.body for source in inputs.objects] == [source.body for source in direct.objects]


@settings(BOUNDED, max_examples=examples(50))
@given(text=texts)
@example(text="1.10")
@example(text="no")
@example(text="a\u2028b")
@example(text="{{ 7 * 7 }}")
@example(text="\n---\nkind: Pod\n")
def test_text_survives_wherever_a_user_can_put_it(text: str) -> None:
    """Character for character, in every place where any text may stand."""
    documents = (
        plan(version=text or "x", restoreVM=True, annotations={f"{PREFIX}min-certs-expiration-in-day": text}),
        release("v1.8.0", kubernetes=text or "x", os=text or "x"),
        version(text or "x", isoURL=text or "x", isoChecksum=text),
        server_version("v1.7.1"),
        node("n1"),
        node("n2"),
        image_lists([item for item in (text, "a") if re.fullmatch(r"\S+", item)], ["b"]),
    )
    found = rendered(documents)
    if found is None:
        return
    assert_sound(found)
    expected = text or "x"
    spec = found.body("ISODownload/Image")["spec"]
    assert (spec["url"], spec["checksum"], spec["displayName"]) == (expected, text, f"up-{expected}")
    assert found.body("NodeUpgrade/Provision")["spec"]["kubernetesVersion"] == expected
    assert found.body("NodeUpgrade/Reboot/n1")["metadata"]["annotations"][f"{PREFIX}pendingOSImage"] == expected
    images_of_env = found.body("ImageCleanup/Purge")["spec"]["upgrade"]["envs"][0]["value"]
    assert set(images_of_env.split(" ")) == {item for item in (text, "a") if re.fullmatch(r"\S+", item)}


@settings(BOUNDED, max_examples=examples(40))
@given(
    tag=tags, name=node_names, others=st.lists(node_names, max_size=1), plan_name=plan_names, retry=st.integers(0, 3)
)
def test_what_looks_like_a_number_stays_text_in_names_and_tags(
    tag: str, name: str, others: list[str], plan_name: str, retry: int
) -> None:
    cluster = [node(each) for each in dict.fromkeys((name, *others))]
    given_plan = plan(plan_name, version=tag or "x", upgrade=tag, nodeUpgradeOption={"pauseNodes": [name]})
    documents = (given_plan, release(), version(tag or "x"), server_version(), *cluster)
    found, problems = attempt(documents, retry)
    if found is None:
        assert all("cannot be the tag of the toolkit image" in str(problem) for problem in problems), problems
        return
    assert_sound(found)
    single = len(cluster) == 1
    step = f"NodeUpgrade/{'SingleNode' if single else 'PreDrain'}/{name}"
    pod = found.body(step)["spec"]["template"]["spec"]
    assert pod["nodeName"] == name
    assert pod["containers"][0]["image"].endswith(f":{(tag or 'v1.8.0').replace('+', '-')}")
    assert {"name": "HARVESTER_UPGRADEPLAN_NAME", "value": plan_name} in pod["containers"][0]["env"]
    assert found.step(step).held


@BOUNDED
@given(
    given_plan=plans(), cluster=clusters(), key=st.sampled_from(["spec", "metadata", "status", "extra"]), value=texts
)
def test_a_plan_of_another_form_is_refused(given_plan: Json, cluster: tuple[Json, ...], key: str, value: str) -> None:
    assert rendered(({**given_plan, key: value}, *cluster)) is None


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(allow_nan=False, allow_infinity=False), texts),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


@st.composite
def broken(draw: st.DrawFn) -> list[Any]:
    """A whole set of inputs, in which one or two values are taken out or are of another form."""
    recorded = {
        "nodeUpgradeStatuses": {"n1": {"state": "ImagePreloaded"}},
        "version": {"isoURL": "u"},
        "singleNode": "n1",
    }
    status = draw(
        st.sampled_from([{}, recorded, recorded | {"releaseMetadata": release(), "previousVersion": "v1.7.1"}])
    )
    given_plan = plan(version="v1.8.0", upgrade="dev", restoreVM=True, annotations={"a": "b"}, status=status)
    lists = image_lists(["a/b:v1"], ["a/b:v2"])
    given = (
        given_plan,
        release(),
        version(),
        server_version(),
        node("n1"),
        machine("m1", "n1"),
        machine_plan("p1", "m1"),
    )
    documents: list[Any] = json.loads(json.dumps([*given, lists]))
    for _ in range(draw(st.integers(1, 2))):
        holder, key = draw(st.sampled_from(list(places(documents))))
        if draw(st.booleans()):
            holder[key] = draw(values)
        else:
            del holder[key]
    return documents


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every value of a tree, by what holds it and its key there; but for whole documents, the last first."""
    items = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    for key, item in reversed(items):
        yield from places(item)
        if isinstance(value, dict):
            yield value, key


@settings(BOUNDED, max_examples=examples(150))
@given(documents=broken())
def test_inputs_of_any_form_are_rendered_or_refused(documents: list[Any]) -> None:
    """What kubectl printed may have been edited, or come from another version of an API."""
    rendered(documents)


def test_the_lists_of_hostile_text_hold_what_they_should() -> None:
    """Most of the one list is no text by Go's rules, and most of the other has a sign that YAML gives a meaning."""
    retyped = [text for text in RETYPED if text not in ("'", '"') and is_retyped(text)]
    assert len(retyped) > 25
    assert len([text for text in HOSTILE if set("&*!|>%@`{}[]#?:-'\"\n\r\t\\") & set(text)]) > 30


def is_retyped(text: str) -> bool:
    try:
        return bool(parse(f"a: {text}", "")[0].value["a"] != text)
    except Problems:  # not a number that JSON has
        return True
