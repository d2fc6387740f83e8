"""A page as its reader's program sees it: elements in order, their attributes, and the text of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Element:
    """`text` is that of everything in it."""

    tag: str
    attributes: Mapping[str, str]
    children: list[Element] = field(default_factory=list)
    text: str = ""

    def every(self, *tags: str) -> Iterator[Element]:
        """Itself and everything below, in the order in which it is read."""
        if not tags or self.tag in tags:
            yield self
        for child in self.children:
            yield from child.every(*tags)


class _TreeBuilder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in ("meta", "link", "br"):
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data


def read_page(text: str) -> Element:
    """Raises `AssertionError` where elements are not closed in their order."""
    reader = _TreeBuilder()
    reader.feed(text)
    reader.close()
    assert reader.open == [reader.root], f"<{reader.open[-1].tag}> is not closed"
    return reader.root


def palettes(style: str) -> list[dict[str, str]]:
    """Each block of colours of a style sheet, in its order: name to `#rrggbb`."""
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    return [dict(re.findall(r"--([a-z0-9]+): (#[0-9a-f]{6});", block)) for block in blocks]


def contrast(one: str, other: str) -> float:
    """The ratio of two colours (WCAG 2, relative luminance)."""
    lighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
