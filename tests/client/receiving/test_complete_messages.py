"""Tests of messages that come complete: joined, settled as one, credited as one (GRP-38)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledgermq import MessageFormatError, Order, SegmentStatus
from ledgermq.client.sansio.buffer import ConsumerBuffer
from ledgermq.protocol.get_options import Options
from ledgermq.testing import MemoryBroker
from support.messages.group_puts import put

SEGMENTS = ("S1{g=-S.1@0+2}", "S2{g=-S.1@2+2}", "S3{g=-S.1@4+2!}")


def fill(connection, queue, *words, **more):
    """Puts messages in a session of their own."""
    with connection.session() as session:
        put(session, queue, *words, **more)


@pytest.mark.parametrize("prefetch", [0, 1, 2, 200])
@pytest.mark.parametrize("ack", ["AUTO", "CLIENT", "INDIVIDUAL", "TRANSACTED"])
def test_a_message_in_segments_comes_as_one(connection, queue, ack, prefetch):
    """Its body is those of the segments, its rest that of the first; all are settled with it."""
    name = queue.partition(":")[2]
    fill(connection, queue, "A", SEGMENTS[0][:-1] + ",n=1}", "B", *SEGMENTS[:0:-1])
    with connection.session(ack=ack) as session:
        consumer = session.consumer(queue, complete_message=True, prefetch=prefetch)
        found = [consumer.receive(20) for _ in range(3)]
        assert [one.body for one in found] == ["A", "S1S2S3", "B"]
        joined = found[1]
        if ack in ("CLIENT", "INDIVIDUAL"):
            joined.acknowledge()
            left = connection.admin.queue_status(name).unacknowledged
            assert left == (2 if ack == "INDIVIDUAL" else 0)
            for one in (found[0], found[2]) if ack == "INDIVIDUAL" else ():
                one.acknowledge()
        elif ack == "TRANSACTED":
            assert session.commit().consumed == 5
    assert joined.properties == {"n": 1}
    assert (joined.offset, joined.group_sequence) == (0, 1)
    assert joined.segment_status is SegmentStatus.NOT_A_SEGMENT
    assert list(joined.deliveries) == [joined.delivery + one for one in range(3)]
    assert joined.kind == "text"
    assert connection.admin.queue_status(name).message_count == 0


def test_bytes_are_joined_too(connection, queue):
    """And what cannot be joined can be settled all the same."""
    fill(connection, queue, *SEGMENTS, bodies={"S1": b"\0\1", "S2": b"\2\3", "S3": b""})
    fill(connection, queue, "T1{g=-T.1@0+2}", "T2{g=-T.1@2+2!}", bodies={"T1": b"x"})
    with connection.session(ack="CLIENT") as session:
        consumer = session.consumer(queue, complete_message=True)
        assert consumer.receive(20).body == b"\0\1\2\3"
        mixed = consumer.receive(20)
        with pytest.raises(MessageFormatError, match="cannot be joined"):
            _ = mixed.body
        mixed.acknowledge()
    assert connection.admin.queue_status(queue.partition(":")[2]).message_count == 0


def test_a_complete_message_goes_back_and_comes_again_complete(connection, queue):
    """Rolled back, each segment counts as backed out; unseen, none does."""
    fill(connection, queue, *SEGMENTS, "B")
    with connection.session(transacted=True) as session:
        with session.consumer(queue, complete_message=True, prefetch=1) as consumer:
            assert not consumer.receive(20).redelivered
            session.rollback()
            again = consumer.receive(20)
            assert (again.body, again.delivery_count) == ("S1S2S3", 2)
            session.rollback()
        with session.consumer(queue, prefetch=10) as plain:
            found = [plain.receive(20) for _ in range(4)]
    assert [(one.body, one.delivery_count) for one in found] == [
        *(("S1", 3), ("S2", 3), ("S3", 3), ("B", 1)),
    ]


def test_closing_gives_complete_messages_back_unseen(connection, queue, eventually):
    """What was joined here and never handed over was delivered to nobody."""
    fill(connection, queue, "A", *SEGMENTS)
    name = queue.partition(":")[2]
    with connection.session() as session:
        with session.consumer(queue, complete_message=True, prefetch=4) as consumer:
            assert consumer.receive(20).body == "A"
            eventually(lambda: consumer._shared.buffer.count == 1)
        assert connection.admin.queue_status(name).current == 3
        with session.consumer(queue, complete_message=True) as consumer:
            found = consumer.receive(20)
    assert (found.body, found.redelivered) == ("S1S2S3", False)


def test_a_message_of_many_deliveries_is_joined(connection, queue):
    """Segments of more than 1 MiB together come in several outcomes, for one credit."""
    words = [f"S{one}{{g=-S.1@{one}+1{'!' if one == 5 else ''}}}" for one in range(6)]
    sizes = {f"S{one}": str(one) * 300_000 for one in range(6)}
    fill(connection, queue, *words, "N", bodies=sizes)
    with connection.session() as session:
        consumer = session.consumer(queue, complete_message=True, prefetch=0)
        found = consumer.receive(20)
        assert found.body == "".join(sizes.values())
        assert found.size_bytes > 1_800_000
        assert consumer._shared.buffer.count == 0
        assert consumer.receive(20).body == "N"


def test_a_listener_gets_messages_complete(connection, queue, eventually):
    """Settled as one when it returns, back as one when it fails."""
    fill(connection, queue, *SEGMENTS, "B")
    found = []

    def listener(message):
        found.append((message.body, message.delivery_count))
        if len(found) == 1:
            raise ValueError("not now")

    with connection.session() as session:
        consumer = session.consumer(queue, complete_message=True)
        consumer.set_message_listener(listener)
        eventually(lambda: len(found) == 3)
    assert found == [("S1S2S3", 1), ("S1S2S3", 2), ("B", 1)]
    assert connection.admin.queue_status(queue.partition(":")[2]).message_count == 0


def test_whoever_is_inside_a_message_gets_the_rest_segment_by_segment(connection, queue):
    """What was begun in logical order cannot come complete any more."""
    fill(connection, queue, *SEGMENTS, "B")
    with connection.session() as session:
        consumer = session.consumer(queue, prefetch=0, order=Order.LOGICAL)
        found = [consumer.receive(20)]
        found += [consumer.receive(20, complete_message=True) for _ in range(3)]
    assert [one.body for one in found] == ["S1", "S2", "S3", "B"]
    assert found[1].segment_status is SegmentStatus.SEGMENT


@pytest.mark.parametrize("group", [False, True])
def test_segments_in_doubt_are_handed_over_as_one(group):
    """H20: whoever dies with a complete message is blamed for each of its segments, once a time."""
    memory = MemoryBroker()
    with memory.connect() as connection:
        fill(connection, "queue:q", *SEGMENTS, "B")
    for _ in range(2):
        connection = memory.connect()
        session = connection.session(ack="CLIENT")
        consumer = session.consumer("queue:q", complete_message=True, prefetch=0 if group else 9)
        if group:
            assert [one.body for one in consumer.receive_group(5)] == ["S1S2S3"]
        else:
            assert consumer.receive(5).body == "S1S2S3"
        memory.crash(connection)
    queue = memory._state.queues["q"]
    # The first time nobody could know; the second time it was told of before.
    counts = [(queue.messages[one].backout_count, queue.doubts[one]) for one in range(3)]
    assert counts == [(2, 1)] * 3
    with memory.connect() as connection, connection.session() as session:
        consumer = session.consumer("queue:q", complete_message=True)
        found = [consumer.receive(5) for _ in range(2)]
    assert [one.body for one in found] == ["S1S2S3", "B"]


# -- the buffer by itself --------------------------------------------------------------------------


def raw(kind):
    """A delivered message as far as the buffer looks at it: alone, or a segment."""
    if kind == "alone":
        return {}
    group = {"segment": True, "last_segment": kind == "last", "in_group": False, "offset": 0}
    return {"header": {"group": group | {"last_in_group": False}}}


@given(st.integers(1, 9), st.lists(st.integers(1, 4), max_size=30), st.randoms())
def test_complete_messages_and_credit_add_up_however_they_are_cut(prefetch, sizes, dice):
    """Each message costs one credit, whatever its segments and the deliveries they come in."""
    buffer = ConsumerBuffer(1, "queue:q", prefetch)
    buffer.options = Options(complete_message=True)
    credit, number, taken = buffer.grant(), 1, []
    expected = []
    for size in sizes:
        parts = ["alone"] if size == 1 else [*["part"] * (size - 1), "last"]
        expected.append((number, size))
        while not credit:
            taken.append(buffer.take())
            if buffer.due >= buffer.threshold:
                credit += buffer.grant()
        credit -= 1
        while parts:
            cut = dice.randint(1, len(parts))
            buffer.deliver(number, [raw(one) for one in parts[:cut]])
            number += cut
            parts = parts[cut:]
            assert buffer.count == len(expected) - len(taken) - bool(parts)
            unseen = sum(size for _, size in expected[len(taken) :]) - len(parts)
            assert len(buffer.unseen()) == unseen
            assert buffer.lowest == expected[len(taken)][0]
    while buffer.count:
        taken.append(buffer.take())
    assert [(first, 1 + len(one.get("further", ()))) for first, one in taken] == expected
    assert buffer.lowest == 0


@given(
    st.integers(1, 9),
    st.lists(st.sampled_from(["deliver", "gather", "back", "take", "hand"]), max_size=60),
    st.lists(st.integers(1, 4), min_size=1, max_size=9),
)
def test_what_is_gathered_counts_as_taken_and_stays_here(prefetch, steps, groups):
    """Credit goes on for the rest of a group; until it is handed over all of it goes back."""
    group = {"in_group": True, "segment": False, "last_segment": False}
    left = [
        {"header": {"group": group | {"last_in_group": one == size}}}
        for size in groups
        for one in range(1, size + 1)
    ]
    buffer = ConsumerBuffer(1, "queue:q", prefetch)
    credit, number, handed = buffer.grant(), 1, 0
    for step in steps:
        whole = False
        if step == "deliver" and credit and left:
            some = left[: min(credit, 2)]
            del left[: len(some)]
            buffer.deliver(number, some)
            credit, number = credit - len(some), number + len(some)
        elif step == "gather":
            whole = buffer.gather()
            assert whole is buffer.gather()
        elif step == "back":
            buffer.put_back_gathered()
        elif step == "take" and buffer.count and not buffer.gathered:
            assert buffer.take()[0] == handed + 1
            handed += 1
        if whole:
            taken = buffer.take_gathered()
            assert [first for first, _ in taken] == list(range(handed + 1, handed + 1 + len(taken)))
            assert taken[-1][1]["header"]["group"]["last_in_group"]
            handed += len(taken)
        if buffer.due >= buffer.threshold:
            credit += buffer.grant()
        assert credit + buffer.count + buffer.due == prefetch
        assert len(buffer.unseen()) == number - 1 - handed
        assert buffer.lowest == (handed + 1 if handed < number - 1 else 0)
