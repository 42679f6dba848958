"""Which messages of the log a copy can be made of."""

from dataclasses import replace

import pytest

from ledgermq.client.admin.copies import why_no_copy
from ledgermq.protocol.limits import HEADER_BYTES_MAX
from ledgermq.wire.content.content import CONTENT, MAP_BODY
from ledgermq.wire.content.replayed import marks_of
from ledgermq.wire.framing.codec import encode_record
from support.messages.journaled import journaled


def of_another_writer(body):
    """A message with a body that our client does not send."""
    content = encode_record(CONTENT, {"body": body, "reply_to": None, "client_time": 0})
    return replace(journaled(None), content=content)


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
