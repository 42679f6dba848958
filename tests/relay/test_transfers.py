"""Transfers on an embedded queue manager: what each may hold, and what goes on together."""

from __future__ import annotations

import pytest

from ledgermq.client.sending import making
from ledgermq.protocol.outcomes import Accepted
from ledgermq.relay.topic_goal import TopicGoal
from ledgermq.relay.transfers import Gatherer, MessageNotRelayedError, decode_transfer
from ledgermq.testing import MemoryBroker
from ledgermq.wire.framing.codec import encode_chunk

MESSAGES = 150
ACCEPTED = Accepted(position=1, index=0, session=1, session_sequence=1)


def check_that_it_can_be_taken_out(connection, gatherer):
    """Both messages are on their queue; without the second one the first goes on."""
    admin = connection.admin
    assert admin.queue_status("orders").current == 2
    assert admin.queue_status("transfers").message_count == 0
    admin.delete_messages("queue:orders", sequences=(1, 1), reason="not carried", actor="op")
    assert gatherer.gather(30.0) == 1


def test_messages_with_large_headers_go_into_as_many_transfers_as_they_need():
    """Headers count as contents do: together they were larger than a message may be."""
    with MemoryBroker().connect() as connection:
        connection.admin.create_queue("orders")
        connection.admin.create_queue("transfers")
        with connection.session(transacted=True) as session:
            producer = session.producer("queue:orders")
            for number in range(MESSAGES):
                producer.send(f"{number}", properties={"note": "x" * 60_000})
            session.commit()
        gatherer, gathered = Gatherer(connection, "orders", "transfers"), 0
        while gathered < MESSAGES:
            count = gatherer.gather(30.0)
            assert 0 < count < MESSAGES
            gathered += count
        transfers = list(connection.browser("queue:transfers"))
    assert sum(len(decode_transfer(one)) for one in transfers) == MESSAGES
    assert max(len(one.body) for one in transfers) < 2 * 1024 * 1024


def test_a_transfer_is_no_larger_than_a_segment_of_the_storage():
    """A unit of work is not: all that waited was refused, however small each message is."""
    with MemoryBroker().connect() as connection, connection.session() as session:
        for name in ("orders", "transfers"):
            connection.admin.create_queue(name)
        connection.admin.alter_queue_manager(segment_bytes=300_000)
        session.producer("queue:orders").send_many([b"x" * 10_000] * MESSAGES)
        gatherer, gathered = Gatherer(connection, "orders", "transfers"), 0
        while gathered < MESSAGES:
            gathered += gatherer.gather(30.0)
        transfers = [decode_transfer(one) for one in connection.browser("queue:transfers")]
        session.producer("queue:orders").send(b"x" * 299_950)
        with pytest.raises(MessageNotRelayedError, match=f"number {MESSAGES}, has no room in a se"):
            gatherer.gather(30.0)
    assert [one["sequence"] for some in transfers for one in some] == list(range(MESSAGES))


def test_what_is_lost_does_not_go_into_a_transfer_with_others():
    """It is named and stays on its queue: no goal would take the transfer, and it held up all."""
    broker = MemoryBroker()
    with broker.connect() as connection, connection.session() as session:
        for name in ("orders", "transfers"):
            connection.admin.create_queue(name)
        producer = session.producer("queue:orders")
        for text in "ab":
            receipt = producer.send(text)
        broker._contents[receipt.position] = [b""]
        gatherer = Gatherer(connection, "orders", "transfers")
        with pytest.raises(MessageNotRelayedError, match="of queue:orders, number 1, is lost"):
            gatherer.gather(30.0)
        check_that_it_can_be_taken_out(connection, gatherer)


@pytest.mark.parametrize(
    "body",
    [None, "text", b"", b"bytes", encode_chunk(-1, -1, []), encode_chunk(-1, -1, [ACCEPTED])],
)
def test_what_is_no_transfer_is_named(body):
    """Anybody may put it to a queue of transfers, and in the framing of one."""
    with MemoryBroker().connect() as connection, connection.session() as session:
        session.producer("queue:transfers").send(body)
        (one,) = connection.browser("queue:transfers")
        with pytest.raises(MessageNotRelayedError, match=f"{one.message_id} .* is no transfer"):
            decode_transfer(one)


def test_a_transfer_that_is_lost_is_named_with_what_to_do():
    """Its messages are on no queue any more; the log has them as they were put."""
    broker = MemoryBroker()
    with broker.connect() as connection, connection.session() as session:
        for name in ("orders", "transfers"):
            connection.admin.create_queue(name)
        session.producer("queue:orders").send_many(["a", "b"])
        Gatherer(connection, "orders", "transfers").gather(30.0)
        (transfer,) = connection.browser("queue:transfers")
        broker._contents[max(broker._contents)] = [b""]
        (lost,) = connection.browser("queue:transfers")
        assert lost.message_id == transfer.message_id
        with pytest.raises(MessageNotRelayedError, match=r"transfer 0 .* 2 messages .* replay"):
            decode_transfer(lost)


def test_what_cannot_become_a_record_does_not_go_into_a_transfer_with_others(monkeypatch):
    """It is named and stays on its queue: out of a transfer nobody could take it by hand."""
    with MemoryBroker().connect() as connection, connection.session() as session:
        for name in ("orders", "transfers"):
            connection.admin.create_queue(name)
        producer = session.producer("queue:orders")
        producer.send("a")
        with monkeypatch.context() as garbled:
            garbled.setattr(making, "encode_content", lambda *_: b"garbage")
            producer.send("garbled")
        gatherer = Gatherer(connection, "orders", "transfers", TopicGoal.check)
        with pytest.raises(MessageNotRelayedError, match=r"number 1, cannot be carried: .* read"):
            gatherer.gather(30.0)
        check_that_it_can_be_taken_out(connection, gatherer)


def test_what_would_be_too_large_a_record_does_not_go_into_a_transfer_with_others():
    """JSON writes six bytes for one: no setting of a topic would let the transfer pass."""
    with MemoryBroker().connect() as connection, connection.session() as session:
        for name in ("orders", "transfers"):
            connection.admin.create_queue(name)
        producer = session.producer("queue:orders")
        producer.send("a")
        producer.send({"name": "\0" * 3_000_000})
        gatherer = Gatherer(connection, "orders", "transfers", TopicGoal.check)
        with pytest.raises(MessageNotRelayedError, match=r"number 1, cannot .* 18,000,011 bytes"):
            gatherer.gather(30.0)
        check_that_it_can_be_taken_out(connection, gatherer)
