"""Every answer that is not a success becomes one of our errors, with its fields. The bodies are a real server's."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_door.cases import call_of, case_files, fields_of, read_case
from reconcile.cluster import errors
from reconcile.cluster.refusal import refusal
from renderer.errors import ExitCode

FILES = case_files("refusals")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_answer_becomes_an_error(file: Path) -> None:
    case = read_case(file)
    error = refusal(call_of(case["call"]), case["status"], case["body"].encode(), case.get("retryAfter", ""))
    assert (type(error).__name__, fields_of(error), str(error)) == (case["error"], case["fields"], case["text"])


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_error_is_one_problem(file: Path) -> None:
    case = read_case(file)
    error = refusal(call_of(case["call"]), case["status"], case["body"].encode())
    assert error.problems == (error.problem,)
    assert error.problem.reason == case["error"]
    assert error.problem.remedy
    assert error.exit_code is ExitCode.CLUSTER


def test_every_error_has_a_case() -> None:
    covered = {read_case(file)["error"] for file in FILES}
    known = {
        name for name, value in vars(errors).items() if isinstance(value, type) and value.__module__ == errors.__name__
    }
    no_answer = {"ClusterError", "Claim", "StatusCause"}
    assert known - covered == no_answer
