"""One image has several names, and what one of them needs is not removed under another."""

from __future__ import annotations

import pytest

from renderer.image_names import canonical, is_repository, is_tag, not_needed


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("docker.io/rancher/rke2:v1", "docker.io/rancher/rke2:v1"),
        ("rancher/rke2:v1", "docker.io/rancher/rke2:v1"),
        ("index.docker.io/library/busybox", "docker.io/library/busybox:latest"),
        ("docker.io/library/busybox:1", "docker.io/library/busybox:1"),
        ("docker.io/busybox:1", "docker.io/library/busybox:1"),
        ("library/busybox:1", "docker.io/library/busybox:1"),
        ("busybox", "docker.io/library/busybox:latest"),
        ("localhost/a:1", "localhost/a:1"),
        ("registry:5000/a", "registry:5000/a:latest"),
        ("registry.example.com/library/busybox:1", "registry.example.com/library/busybox:1"),
        ("registry.example.com/busybox:1", "registry.example.com/busybox:1"),
        ("registry.example.com:5000/a/b", "registry.example.com:5000/a/b:latest"),
        ("rancher/a@sha256:0", "docker.io/rancher/a@sha256:0"),
        ("rancher/a:v1@sha256:0", "docker.io/rancher/a:v1"),
    ],
)
def test_an_image_has_one_long_name(image: str, expected: str) -> None:
    assert canonical(image) == expected
    assert canonical(expected) == expected


def test_an_image_that_is_needed_under_another_name_stays() -> None:
    previous = ["rancher/a:v1", "docker.io/rancher/b:v1", "busybox:1", "rancher/c:v1@sha256:0", "quay.io/d:v1"]
    current = ["docker.io/rancher/a:v1", "rancher/b:v1", "docker.io/library/busybox:1", "rancher/c:v1"]
    assert not_needed(previous, current, ()) == ["quay.io/d:v1"]


def test_what_is_removed_is_named_as_the_list_names_it() -> None:
    assert not_needed(["rancher/a:v1", "rancher/a:v2", "rancher/keep:v1"], ["docker.io/rancher/a:v2"], ("keep",)) == [
        "rancher/a:v1"
    ]


@pytest.mark.parametrize("text", ["v1.8.1", "a" * 128, "_", "1"])
def test_a_tag(text: str) -> None:
    assert is_tag(text)


@pytest.mark.parametrize("text", ["", "a b", "-", "-1", ".a", "a/b:c", "a" * 129, "a\n"])
def test_no_tag(text: str) -> None:
    assert not is_tag(text)


def test_a_repository_has_neither_tag_nor_digest() -> None:
    assert is_repository("registry.example.com:5000/rancher/harvester-upgrade-toolkit")
    assert not any(map(is_repository, ("a:v1", "a@sha256:" + "0" * 64, "a/B", "a b", "-x", "")))
