"""The one door to jsonschema: reports what is wrong with a document, by one of the files in `schemas/`.

It does not know what a document means; that is for the rooms that read it.
"""

from renderer.validation.validate import (
    Located,
    document_problems,
    explained,
    load,
    part_problems,
    problems,
    schema_problems,
    whole_problems,
)

__all__ = [
    "Located",
    "document_problems",
    "explained",
    "load",
    "part_problems",
    "problems",
    "schema_problems",
    "whole_problems",
]
