"""Hides what is secret wherever something leaves the program: one list (`templates/_redaction`), one redactor. Pure.

Both the name of a field and the form of its value are asked, since neither is enough: people call a password what they
like, and a password looks like any word. In doubt a text is hidden. What only names a Secret stays.
"""

from renderer.redaction.in_text import bare_address as bare_address
from renderer.redaction.listed import RedactionRules as RedactionRules
from renderer.redaction.listed import redaction_rules as redaction_rules
from renderer.redaction.listed import rules_of_overlay as rules_of_overlay
from renderer.redaction.packaged_list import packaged_list as packaged_list
from renderer.redaction.packaged_list import packaged_redactor as packaged_redactor
from renderer.redaction.packaged_list import packaged_rules as packaged_rules
from renderer.redaction.redactor import REDACTED as REDACTED
from renderer.redaction.redactor import Redactor as Redactor
from renderer.redaction.redactor import is_mark as is_mark
from renderer.redaction.redactor import is_redacted as is_redacted
from renderer.redaction.redactor import numbered as numbered
from renderer.redaction.redactor import without_numbers as without_numbers
