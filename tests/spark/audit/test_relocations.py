"""Tests of tables and audit on logs whose messages were written again (PROTOCOL.md §22, H24)."""

from copy import deepcopy
from dataclasses import replace

import pytest

from ledgermq.protocol import operations as op
from ledgermq.protocol.administration import Relocate
from ledgermq.wire.framing.codec import decode_operation, encode_operation
from ledgermq_spark.audit.audit import audit
from ledgermq_spark.audit.evidence import ANOMALY_KINDS
from ledgermq_spark.audit.relocations import altered_copies, relocation_refusals
from ledgermq_spark.derivation.history import life_of
from support.audits.audits import subject_of
from support.audits.frames import operations_frame
from support.brokers.log_writer import Script
from support.generators.naive_operations import sample_message

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def copy_of(message, position, index, *places):
    """A message that is written again; places as (creation, number)."""
    plain = {name: value for name, value in message.items() if name != "header"}
    header = message.get("header")
    return {
        "put_position": position,
        "put_index": index,
        "places": [{"created_position": one, "sequence": number} for one, number in places],
        "message": plain,
        "header": [] if header is None else [header],
    }


class Story:
    """Messages of a queue and of a topic are written again, rightly and wrongly."""

    def __init__(self):
        self.script = script = Script()
        session = script.session()
        self.queue = session.send(op.CreateQueue, queue="q")
        session.send(op.CreateTopic, topic="t")
        subscribed = {"subscription": "s", "durable": True, "shared": True}
        self.subscription = session.send(
            op.OpenConsumer, consumer=1, destination="topic:t", selector="", **subscribed
        )
        self.message = message = sample_message(7, 4, 30, "red")
        other = sample_message(8, 3, 20, "")
        self.put = session.send(op.Put, destination="queue:q", messages=[message, other])
        self.published = session.send(op.Put, destination="topic:t", messages=[other])
        of_queue = copy_of(message, self.put, 0, (self.queue, 0))
        self.first = self.relocate(session, of_queue)
        of_topic = copy_of(other, self.published, 0, (self.subscription, 0))
        self.second = self.relocate(session, of_queue, of_topic)
        heavier = deepcopy(of_queue)
        heavier["message"]["priority"] = 9
        self.refused = {self.relocate(session, heavier): "message-differs"}
        self.refused[self.relocate(session)] = "message-invalid"
        self.refused[self.relocate(session, of_queue, actor="")] = "reason-invalid"
        session.consumer("q", 2, credit=1)
        session.send(op.Acknowledge, deliveries=[{"first": 1, "last": 1}])
        self.late = self.relocate(session, heavier, of_queue)
        session.close()

    @staticmethod
    def relocate(session, *copies, actor="operator"):
        """Writes messages again; gives the position."""
        return session.send(Relocate, messages=list(copies), actor=actor, reason="disk")


@pytest.fixture(scope="module")
def told(spark, tmp_path_factory):
    """The story and what an audit sees of it."""
    story = Story()
    return subject_of(spark, tmp_path_factory.mktemp("again"), story.script.entries), story


def test_tables_and_fold_agree_on_what_is_refused(told):
    """As a whole, and with the same reason; what is gone is skipped, whatever is said of it."""
    subject, story = told
    assert dict(relocation_refusals(subject.tables)) == story.refused


def test_copies_are_compared_with_what_was_put(told):
    """One that was skipped is one too; nothing else is found (H24)."""
    report = audit(told[0])
    (found,) = report.anomalies
    story = told[1]
    assert (found.kind, found.position, found.index) == ("altered copy", story.late, 0)
    assert found.field == "priority"
    assert found.message_id == story.message["message_id"].hex()
    assert found.kind in ANOMALY_KINDS


@pytest.mark.parametrize("change", ["content", "header"])
def test_a_copy_with_the_right_size_is_no_better(told, spark, change):
    """The fold cannot tell; the audit compares what stands on the log."""
    subject, story = told
    entries = list(story.script.entries)
    operation = decode_operation(entries[story.first].value)
    copy = operation.messages[0]
    if change == "content":
        copy["message"]["content"] = copy["message"]["content"][:-1] + b"!"
    else:
        copy["header"][0]["properties"] = {"color": "led"}
    entries[story.first] = replace(entries[story.first], value=encode_operation(operation))
    found = altered_copies(operations_frame(spark, entries), subject.expected)
    assert [one.position for one in found] == [story.first, story.late]


def test_the_life_of_a_message_tells_where_it_was_written_again(told):
    """Who wanted it, and why; a refused Relocate is no step of it."""
    subject, story = told
    life = life_of(subject.tables, "QM1", story.message["message_id"])
    steps = [one for one in life.steps if one.what == "written again"]
    assert [one.position for one in steps] == [story.first, story.second, story.late]
    assert "operator: disk" in steps[0].reason
    assert [one.what for one in life.steps][-2:] == ["acknowledged", "written again"]
