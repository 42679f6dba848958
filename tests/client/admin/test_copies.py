"""Which messages of the log a copy can be made of."""

from dataclasses import replace

import pytest

from ledgermq.client.admin.copies import Copier, why_no_copy
from ledgermq.protocol.limits import HEADER_BYTES_MAX
from ledgermq.testing import MemoryBroker
from ledgermq.wire.content.content import CONTENT, MAP_BODY
from ledgermq.wire.content.replayed import marks_of
from ledgermq.wire.framing.codec import encode_record
from support.messages.journaled import journaled


def of_another_writer(body, reply_to=None, **header):
    """A message with a body or reply destination that our client does not send."""
    content = encode_record(CONTENT, {"body": body, "reply_to": reply_to, "client_time": 0})
    return replace(journaled(None, **header), content=content)


def place(*, segment):
    """The place of a message in a group, as a header has it."""
    return {
        "group_id": b"g" * 24,
        "group_sequence": 1,
        "offset": 0,
        "length": 3 if segment else 0,
        "in_group": True,
        "last_in_group": False,
        "segment": segment,
        "last_segment": False,
        "logical_order": False,
    }


@pytest.mark.parametrize("body", [None, "text", b"bytes", {"a": 1}])
def test_what_a_client_sent_can_be_copied(body):
    """Whatever its body."""
    one = journaled(body, properties={"color": "red"}, correlation_id="c", type="t")
    assert why_no_copy(one, marks_of("QM1", one, "again")) == ""


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (replace(journaled(None), content=b"garbage"), "cannot be read"),
        (of_another_writer((MAP_BODY, {"entries": {"": 1}})), "1 to 255 characters"),
        (
            journaled(None, properties={"p": "x" * (HEADER_BYTES_MAX - 100)}),
            "bytes of properties",
        ),
    ],
    ids=["no content", "an entry without a name", "no room for what names the original"],
)
def test_what_a_copy_cannot_be_made_of_is_said(one, why):
    """A replay that stopped there could never go on: a log is not mended."""
    assert why in why_no_copy(one, marks_of("QM1", one, "again"))


@pytest.mark.parametrize("group", [None, place(segment=False)], ids=["alone", "in a group"])
def test_a_copy_has_a_reply_destination_that_is_none(group):
    """Whoever asked for no reply that could come has none from the copy either."""
    one = of_another_writer("text", "nowhere", group=group)
    assert why_no_copy(one, {}) == ""
    with MemoryBroker().connect() as connection, connection.session(transacted=True) as session:
        Copier(session=session).put(one, marks={})
        session.commit()
        (copy,) = connection.browser("queue:q")
    assert copy.reply_to == "nowhere"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ((MAP_BODY, {"entries": {"a": 1}}), "only text and bytes can be cut into segments"),
        (b"", "a segment has one byte at least"),
    ],
    ids=["a map", "no bytes"],
)
def test_a_segment_that_is_none_is_copied_only_where_it_has_no_place(body, why):
    """Without groups, or on a topic, it is a message like others."""
    one = of_another_writer(body, group=place(segment=True))
    assert why in why_no_copy(one, {})
    assert why_no_copy(one, {}, to="topic:t") == why_no_copy(one, {}, groups=False) == ""


@pytest.mark.parametrize("kind", ["queue", "topic"])
def test_what_was_put_to_a_temporary_destination_is_copied_only_elsewhere(kind):
    """That one ends with its connection, and no other is ever called so."""
    one = journaled("an answer", destination=f"{kind}:temporary/0a/1")
    assert "is temporary" in why_no_copy(one, {})
    assert why_no_copy(one, {}, to="queue:q") == ""
