"""The pages of the protocol hold: examples play, fields are those of the schemas."""

from __future__ import annotations

import json

import pytest

from support.checkout import SCHEMAS
from support.scripts.play import play
from support.scripts.protocol_pages import ROW, examples, sections

# Every operation of a session begins with these; §4 has them once.
COMMON = ["session", "session_sequence", "answered_through", "handed_through"]
PARTS = ["Fields", "Refused", "Effect", "Writer's duty", "Reader's duty", "Example", "History"]
EXAMPLES = examples()
OPERATIONS = [path.name.split(".")[2] for path in sorted(SCHEMAS.glob("ledgermq.operation.*"))]


@pytest.mark.parametrize("script", EXAMPLES, ids=[one.title.replace(" ", "_") for one in EXAMPLES])
def test_example_plays(script):
    """An example answers as it says, in the fold and in the slow model."""
    play(script)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_operation_has_one_section_in_the_shape_of_all(operation):
    """An operation has one section named by it, with its schema's fields and its parts in order."""
    (found,) = [one for one in sections() if one.title == operation]
    assert f"operation.{operation}" in found.fields
    assert {"Fields", "Effect", "Example"} <= set(found.parts)
    assert found.parts == [one for one in PARTS if one in found.parts]


def test_tables_of_fields_are_those_of_the_schemas():
    """A field that a schema has and the text has not, or the other way, is an error of one."""
    for section in sections():
        for name, listed in section.fields.items():
            schema = json.loads((SCHEMAS / f"ledgermq.{name}.avsc").read_text(encoding="utf-8"))
            fields = [one["name"] for one in schema["fields"]]
            own = fields[len(COMMON) :] if fields[: len(COMMON)] == COMMON else fields
            assert listed == own, f"{section.page}, {section.title}: {name}"


def test_every_setting_of_destinations_is_in_one_table():
    """The settings of a queue or topic are those of its schema, in three tables by concept."""
    names = ("Settings of destinations", "Settings of redelivery", "Quotas")
    text = "".join(one.text for one in sections() if one.title in names)
    schema = json.loads((SCHEMAS / "ledgermq.type.QueueSettings.avsc").read_text(encoding="utf-8"))
    assert sorted(ROW.findall(text)) == sorted(one["name"] for one in schema["fields"])
