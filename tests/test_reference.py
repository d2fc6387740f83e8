"""docs/reference and schemas/built are what the schemas, the catalogues and the code say now. `make reference` writes
them."""

from __future__ import annotations

from difflib import unified_diff

import pytest
from support.built_schemas import FOLDER as BUILT
from support.built_schemas import built
from support.reference.pages import PAGES
from support.rendered_plans import ROOT

from renderer.model.document_type import ALL, ANNOTATIONS, REASONS, DocumentType

FOLDER = ROOT / "docs" / "reference"
WRITTEN = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.iterdir()}
OF_OURS = {ANNOTATIONS, REASONS}
"""Catalogues of which pages are made; nobody else writes or reads them."""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_up_to_date(name: str, pytestconfig: pytest.Config) -> None:
    path, generated = FOLDER / name, PAGES[name]()
    if pytestconfig.option.update_snapshots:
        FOLDER.mkdir(parents=True, exist_ok=True)
        path.write_text(generated, encoding="utf-8")
        return
    written = path.read_text(encoding="utf-8") if path.exists() else ""
    difference = "\n".join(
        unified_diff(written.splitlines(), generated.splitlines(), "written", "now", n=0, lineterm="")
    )
    assert written == generated, f"{difference}\nrun `make reference` and read the difference"


@pytest.mark.parametrize("of", [of for of in ALL if of not in OF_OURS], ids=lambda of: of.kind)
def test_a_document_has_a_table_of_its_keys(of: DocumentType) -> None:
    """Its `apiVersion` and `kind` stand in one."""
    found = [name for name, text in WRITTEN.items() if f'| `kind` | `"{of.kind}"` | yes |' in text]
    assert len(found) == 1
    assert f'| `apiVersion` | `"{of.api_version}"` | yes |' in WRITTEN[found[0]]


def test_the_folder_holds_nothing_else() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(PAGES)


def test_the_built_schemas_are_those_of_the_definitions(pytestconfig: pytest.Config) -> None:
    expected = built()
    if pytestconfig.option.update_snapshots:
        for name, text in expected.items():
            (BUILT / name).write_text(text, encoding="utf-8")
    assert {path.name: path.read_text(encoding="utf-8") for path in BUILT.iterdir()} == expected, "run `make reference`"
