"""Tests of messages in segments: cut where they may be, each a message, together or not at all."""

import pytest

import ledgermq
from ledgermq import GroupPlace
from ledgermq.client.sending.segmenting import fits, pieces_of
from support.messages.group_members import groups_of, members_of, only_group

GROUP = bytes(range(24))


@pytest.mark.parametrize(
    ("text", "max_segment", "pieces"),
    [
        ("abcdef", 3, ["abc", "def"]),
        ("abcdefg", 3, ["abc", "def", "g"]),
        ("aäöü", 2, ["a", "ä", "ö", "ü"]),
        ("aäöü", 3, ["aä", "ö", "ü"]),
        ("€€", 5, ["€", "€"]),
        ("a😀b", 4, ["a", "😀", "b"]),
        ("abc", 3, ["abc"]),
        ("", 3, [""]),
        (b"", 3, [b""]),
        (b"\xc3\xa4\xc3", 2, [b"\xc3\xa4", b"\xc3"]),
        (bytearray(b"abc"), 2, [b"ab", b"c"]),
    ],
)
def test_a_body_is_cut_between_characters_and_anywhere_in_bytes(text, max_segment, pieces):
    """No piece has more bytes of UTF-8 than a segment may have, and nothing is lost."""
    assert pieces_of(text, max_segment, "queue:q") == pieces


@pytest.mark.parametrize("max_segment", [0, -1, 2.0, True, "9"])
def test_the_size_of_a_segment_is_a_number_above_0(connection, queue, max_segment):
    """Anything else is a mistake in the program."""
    whole = type(max_segment) is int
    error = ledgermq.IllegalStateError if whole else ledgermq.ArgumentTypeError
    with connection.session() as session, pytest.raises(error, match="max_segment"):
        session.producer(queue).send_segmented("text", max_segment=max_segment)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"a": 1}, "dict"),
        (None, "NoneType"),
        (ledgermq.StreamBody([1]), "StreamBody"),
        (ledgermq.MapMessage({"a": 1}), "dict"),
        ("€", "2 bytes"),
        ("\ud800", "cannot be written"),
    ],
)
def test_what_cannot_be_cut_is_refused_with_a_hint(connection, queue, body, named):
    """Only text and bytes have segments, and no segment has part of a character."""
    with connection.session() as session, pytest.raises(ledgermq.MessageFormatError, match=named):
        session.producer(queue).send_segmented(body, max_segment=2)


def test_whether_a_body_fits_counts_bytes():
    """Text by its UTF-8; what cannot be cut counts as if it did."""
    assert fits("ääää", 8)
    assert not fits("ääää", 7)
    assert not fits(b"123", 2)
    assert fits({"a": 1}, 0)


@pytest.mark.parametrize("body", ["äöü" * 100, b"\x00\xff" * 300])
def test_segments_are_messages_of_their_own(connection, queue, body):
    """Each has its piece as body and all that was told of the message (GRP-38)."""
    with connection.session() as session:
        receipts = session.producer(queue).send_segmented(
            body,
            max_segment=250,
            properties={"n": 1},
            correlation_id="c",
            type="t",
            reply_to="queue:replies",
            priority=7,
        )
        consumer = session.consumer(queue)
        found = [consumer.receive(20) for _ in range(3)]
    assert type(body)().join(one.body for one in found) == body
    for message, receipt in zip(found, receipts, strict=True):
        assert (message.message_id, message.sequence) == (receipt.message_id, receipt.sequence)
        assert (message.properties, message.correlation_id) == ({"n": 1}, "c")
        assert (message.type, message.reply_to, message.priority) == ("t", "queue:replies", 7)
    assert [one.group.offset for one in receipts] == [0, 250, 500]
    assert [one.group.last_segment for one in receipts] == [False, False, True]
    assert len({one.position for one in receipts}) == 1


def test_segments_make_one_whole_message(connection, queue):
    """With offsets and lengths in bytes; a short body is a message without segments."""
    with connection.session() as session:
        producer = session.producer(queue)
        receipts = producer.send_segmented("€" * 100, max_segment=100)
        (short,) = producer.send_segmented("€" * 33, max_segment=100)
    found = only_group(connection, queue)
    assert (found["in_group"], found["complete"], found["messages"]) == (False, True, 1)
    members = members_of(connection, queue, receipts[0].group.group_id)
    assert [(one["offset"], one["length"]) for one in members] == [
        (0, 99),
        (99, 99),
        (198, 99),
        (297, 3),
    ]
    assert short.group is None


def test_a_message_that_was_received_is_sent_in_segments(connection, queue):
    """Its properties and fields go with every segment, save those given."""
    with connection.session() as session:
        session.producer(queue).send("text of a message", properties={"n": 1}, type="t")
        message = session.consumer(queue).receive(20)
        target = queue + ".other"
        session.producer(target).send_segmented(message, max_segment=9, type="other")
        consumer = session.consumer(target)
        found = [consumer.receive(20) for _ in range(2)]
    assert [one.body for one in found] == ["text of a", " message"]
    assert [(one.properties["n"], one.type) for one in found] == [(1, "other")] * 2


def test_segments_of_a_message_of_a_group(connection, queue):
    """Messages with and without segments follow one another; the last is the last in all."""
    with connection.session() as session, session.producer(queue) as producer:
        with producer.group(GROUP) as group:
            group.send("1")
            group.send_segmented("2222", max_segment=2)
            assert group.group_sequence == 2
            group.send_segmented("33", max_segment=2)
            group.send_segmented("44444", max_segment=2, last=True)
        place = GroupPlace(in_group=False)
        producer.send_segmented("aaaa", max_segment=3, group=place, logical_order=True)
    members = members_of(connection, queue, GROUP)
    assert [(one["group_sequence"], one["offset"], one["last_in_group"]) for one in members] == [
        (1, 0, False),
        (2, 0, False),
        (2, 2, False),
        (3, 0, False),
        (4, 0, True),
        (4, 2, True),
        (4, 4, True),
    ]
    assert all(one["complete"] for one in groups_of(connection, queue))


def test_a_segment_may_be_cut_further(connection, queue):
    """Its pieces stand where it would; only the last segment's last piece is the last (GRP-37)."""
    with connection.session() as session, session.producer(queue) as producer:
        first = GroupPlace(group_id=GROUP, in_group=False, segment=True)
        last = GroupPlace(group_id=GROUP, in_group=False, offset=4, last_segment=True)
        producer.send_segmented("5678", max_segment=2, group=last)
        producer.send_segmented("1234", max_segment=2, group=first)
    members = members_of(connection, queue, GROUP)
    assert [(one["offset"], one["last_segment"]) for one in members] == [
        (0, False),
        (2, False),
        (4, False),
        (6, True),
    ]
    assert only_group(connection, queue)["complete"]


def test_segments_of_a_unit_of_work_come_with_its_commit(connection, queue):
    """All or none, whatever their size (GRP-23)."""
    with connection.session(transacted=True) as session:
        producer = session.producer(queue)
        producer.send_segmented("x" * 100, max_segment=10)
        session.rollback()
        receipts = producer.send_segmented("x" * 100, max_segment=10)
        session.commit()
    assert [one.sequence for one in receipts] == list(range(10))
    assert only_group(connection, queue)["items"] == 10


def test_a_large_message_is_put_in_several_operations(connection, queue):
    """One after the other, as much in each as goes into one."""
    body = b"0123456789" * 1_000_000
    with connection.session() as session:
        receipts = session.producer(queue).send_segmented(body, max_segment=1_000_000)
    assert [one.sequence for one in receipts] == list(range(10))
    assert [one.position for one in receipts] == sorted(one.position for one in receipts)
    assert len({one.position for one in receipts}) == 3
    assert only_group(connection, queue)["complete"]


def test_no_segment_follows_one_that_was_refused(connection, queue):
    """What was put before it stays; what comes behind it is not written."""
    connection.admin.create_queue(queue, message_bytes_max=100)
    with connection.session() as session:
        producer = session.producer(queue)
        with pytest.raises(ledgermq.MessageTooLargeError) as caught:
            producer.send_segmented(b"x" * 500, max_segment=250)
        place = GroupPlace(group_id=GROUP, in_group=False, offset=150, last_segment=True)
        producer.send(b"x" * 50, group=place)
        own = GroupPlace(group_id=GROUP, in_group=False)
        with pytest.raises(ledgermq.GroupClashError):
            producer.send_segmented(b"x" * 210, max_segment=70, group=own)
    assert "segmentation_allowed" in caught.value.__notes__[0]
    assert connection.admin.queue_status(queue).message_count == 1


def test_segmentation_is_inhibited_unless_allowed(connection, queue):
    """The error says how to allow it."""
    with connection.session() as session:
        producer = session.producer(queue)
        with pytest.raises(ledgermq.MessageTooLargeError, match="segmentation_allowed=True"):
            producer.send(b"x" * 9_000_000)
        receipt = producer.send(b"x" * 9_000_000, segmentation_allowed=True)
        assert producer.send("small", segmentation_allowed=True).group is None
    assert receipt.group.segment
    found = only_group(connection, queue)
    assert (found["complete"], found["items"]) == (True, 2)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_allowed_segmentation_keeps_to_the_limit_of_the_queue(connection, queue, asynchronous):
    """What fits is one message; the rest is cut so that it fits, reply_to counted."""
    connection.admin.create_queue(queue, message_bytes_max=200)
    with connection.session() as session:
        producer = session.producer(queue)

        def send(body):
            options = {"segmentation_allowed": True, "reply_to": "queue:replies"}
            if asynchronous:
                return producer.send_async(body, **options).result(20)
            return producer.send(body, **options)

        small, large = send("x" * 100), send("ä" * 500)
        consumer = session.consumer(queue)
        assert consumer.receive(20).body == "x" * 100
        found = [message.body for message in consumer.until_idle(1.0)]
    assert small.group is None
    assert large.group.offset == 0
    assert "".join(found) == "ä" * 500
    assert all(len(one.encode()) > 120 for one in found[:-1])


def test_a_queue_too_small_for_any_segment_is_told(connection, queue):
    """There must be room for a body beside what every message has."""
    connection.admin.create_queue(queue, message_bytes_max=20)
    with (
        connection.session() as session,
        pytest.raises(ledgermq.MessageTooLargeError, match="room"),
    ):
        session.producer(queue).send("x", segmentation_allowed=True)


def test_what_a_queue_takes_is_asked_for_once(connection, queue, monkeypatch):
    """And again only as long as the queue is not there."""
    with connection.session() as session:
        asked = []
        questions, ask = connection._running.questions, connection._running.questions.bytes_max_of
        monkeypatch.setattr(questions, "bytes_max_of", lambda name: asked.append(name) or ask(name))
        producer = session.producer(queue)
        for _ in range(4):
            producer.send("x", segmentation_allowed=True)
    assert len(asked) == 2


def test_an_asynchronous_send_in_segments_fails_as_a_whole(connection, queue):
    """If one of its segments was refused, its future has the error."""
    connection.admin.create_queue(queue, message_bytes_max=100)
    with connection.session() as session:
        producer = session.producer(queue)
        own = GroupPlace(group_id=GROUP, in_group=False)
        in_the_way = GroupPlace(group_id=GROUP, in_group=False, segment=True)
        producer.send(b"x" * 10, group=in_the_way)
        future = producer.send_async(b"x" * 300, group=own, segmentation_allowed=True)
        assert isinstance(future.exception(20), ledgermq.GroupClashError)


def test_a_topic_has_no_segmentation(connection, queue):
    """What fits is sent as it is; what does not, is refused (GRP-45)."""
    topic = queue.replace("queue:", "topic:")
    with connection.session() as session:
        producer = session.producer(topic)
        assert producer.send("x", segmentation_allowed=True).group is None
        with pytest.raises(ledgermq.MessageTooLargeError):
            producer.send(b"x" * 9_000_000, segmentation_allowed=True)
