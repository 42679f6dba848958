"""The pages of the protocol as tests read them: sections, tables of fields, examples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from support.checkout import SCHEMAS
from support.scripts.script import Script, read_scripts

INDEX = SCHEMAS / "PROTOCOL.md"
PAGES = sorted((SCHEMAS / "protocol").glob("*.md"))
HEADING = re.compile(r"^## §(\d+) (.+)$", re.MULTILINE)
PART = re.compile(r"^### (.+)$", re.MULTILINE)
REFUSED = re.compile(r"^### Refused\n(.+?)(?=^### |\Z)", re.MULTILINE | re.DOTALL)
REASON = re.compile(r"`([a-z]+(?:-[a-z]+)+|transacted)`")
EXAMPLE = re.compile(r"^```script\n(.+?)^```$", re.MULTILINE | re.DOTALL)
# A link to a schema at the start of a paragraph, and the table that follows, if any.
FIELDS = re.compile(
    r"(?<=\n\n)\[`[\w.]+`\]\(\.\./ledgermq\.([\w.]+)\.avsc\)[^|#]*?\n\n((?:\|.*\n)*)"
)
ROW = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)


class Section(NamedTuple):
    """What a page says under one heading of the second level."""

    page: str
    number: int
    title: str
    text: str

    @property
    def parts(self) -> list[str]:
        """The headings of the third level."""
        return PART.findall(self.text)

    @property
    def refusals(self) -> frozenset[str]:
        """The reason codes under its heading "Refused"."""
        found = REFUSED.search(self.text)
        return frozenset(REASON.findall(found[1])) if found else frozenset()

    @property
    def fields(self) -> dict[str, list[str]]:
        """The fields that its tables list, by the schema that they are of."""
        return {name: ROW.findall(table) for name, table in FIELDS.findall(self.text)}


def sections() -> Iterator[Section]:
    """The sections of all pages, in order."""
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        headings = list(HEADING.finditer(text))
        ends = [one.start() for one in headings[1:]] + [len(text)]
        for heading, end in zip(headings, ends, strict=True):
            title = heading[2]
            yield Section(path.stem, int(heading[1]), title, text[heading.end() : end])


# Of what is no operation of a session, and of every operation of one.
RECORDS, EVERY_OPERATION = "Unreadable records", "Sessions and retries"


@cache
def refusals_of(operation: str) -> frozenset[str]:
    """The reason codes with which the pages say that an operation may be refused."""
    titles = (RECORDS if operation == "Unreadable" else operation, EVERY_OPERATION)
    return frozenset().union(*(one.refusals for one in sections() if one.title in titles))


def examples() -> list[Script]:
    """The examples of all pages, each named by page and section."""
    found: list[Script] = []
    for one in sections():
        for text in EXAMPLE.findall(one.text):
            found += read_scripts(text, f"{one.page} {one.number} {one.title}")
    return found
