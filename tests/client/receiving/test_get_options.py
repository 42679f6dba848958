"""Tests of the options of a get: per consumer and per call, matching, the cursor, warnings."""

import contextlib
import warnings

import pytest

import ledgermq
from ledgermq import (
    GetMatch,
    GetOptionsError,
    IllegalStateError,
    IncompleteGroupWarning,
    IncompleteMessageWarning,
    MatchOptionsError,
    Order,
)
from ledgermq.protocol.operations import Get
from support.messages.group_puts import fill, group_id


def test_a_call_has_options_of_its_own_where_nothing_is_asked_for_ahead(connection, queue):
    """Each call says its own, and one that says none has the consumer's."""
    fill(connection, queue, "A", "Y2{g=Y.2!}", "B", "Y1{g=Y.1}", "C")
    with connection.session() as session:
        consumer = session.consumer(queue, prefetch=0, order=Order.LOGICAL)
        assert consumer.receive(20, order=Order.PHYSICAL, match=GetMatch(sequence=2)).body == "B"
        assert consumer.receive(20).body == "A"
        assert consumer.receive(20, match=GetMatch(group_id=group_id("Y"))).body == "Y1"
        assert consumer.receive(20, all_messages_available=True).body == "Y2"
        assert consumer.receive(20, order="PHYSICAL", all_segments_available=True).body == "C"


def test_options_of_a_call_are_refused_where_messages_are_asked_for_ahead(connection, queue):
    """What is on its way was asked for by the consumer's options."""
    with connection.session() as session:
        consumer = session.consumer(queue, prefetch=1)
        for options in (
            *({"order": Order.LOGICAL}, {"all_messages_available": True}, {"match": GetMatch()}),
            *({"all_segments_available": False}, {"complete_message": True}),
            {"under_cursor": session.browser(queue)},
        ):
            with pytest.raises(IllegalStateError, match="only with prefetch=0"):
                consumer.receive(0, **options)


@pytest.mark.parametrize(
    ("given", "body"),
    [
        (lambda found: {"message_id": found["C"].message_id}, "C"),
        (lambda found: {"message_id": bytes.fromhex(found["B"].message_id)}, "B"),
        (lambda found: {"correlation_id": "b"}, "B"),
        (lambda found: {"group_id": group_id("G")}, "M1"),
        (lambda found: {"group_id": group_id("G"), "group_sequence": 2}, "M2"),
        (lambda found: {"group_id": group_id("G"), "offset": 5}, "M3"),
        (lambda found: {"group_sequence": 1}, "A"),
        (lambda found: {"sequence": found["C"].sequence}, "C"),
        (lambda found: {}, "A"),
        (lambda found: {"group_sequence": 3}, None),
        (lambda found: {"correlation_id": "b", "group_sequence": 2}, None),
    ],
)
def test_a_match_chooses_among_what_is_there(connection, queue, given, body):
    """Every value that is given must be the message's (GRP-34); in a call and in a consumer."""
    words = ("A{correlation=a}", "B{correlation=b}", "M1{g=G.1}", "M2{g=G.2!@0+5}")
    fill(connection, queue, *words, "M3{g=G.2!@5+5!}", "C{correlation=b}")
    match = GetMatch(**given({one.body: one for one in connection.browser(queue)}))
    with connection.session(transacted=True) as session:
        consumer = session.consumer(queue, prefetch=0)
        found = consumer.receive(20 if body else 0.1, match=match)
        assert body == (found and found.body)
        session.rollback()
    with connection.session(ack="CLIENT") as session:
        found = session.consumer(queue, prefetch=1, match=match).receive(20 if body else 0.1)
        assert body == (found and found.body)


def test_a_match_must_agree_with_what_logical_order_brings_next(connection, queue):
    """GRP-44: the call raises, nothing was got, and the next call goes on in the group."""
    fill(connection, queue, "M1{g=G.1}", "M2{g=G.2}", "N")
    with connection.session() as session:
        consumer = session.consumer(queue, prefetch=0, order=Order.LOGICAL)
        assert consumer.receive(20).body == "M1"
        for wrong in (GetMatch(group_sequence=3), GetMatch(group_id=group_id("X"))):
            for timeout in (20, 0):
                with pytest.raises(MatchOptionsError) as raised:
                    consumer.receive(timeout, match=wrong)
                assert raised.value.destination == queue
        assert consumer.receive(20, match=GetMatch(group_sequence=2)).body == "M2"
        assert connection.admin.queue_status(queue.partition(":")[2]).current == 1


def test_a_get_says_its_options_once(place, queue):
    """They stand in the first Get and in each that changes them; others say none."""
    with place.connect() as connection:
        fill(connection, queue, *"ABCDE")
        with connection.session() as session:
            written = []
            wrapped = session._engine.write_locked

            def noting(operation, **fields):
                if operation is Get:
                    options = fields.get("options")
                    written.append(options and options["logical_order"])
                return wrapped(operation, **fields)

            session._engine.write_locked = noting
            consumer = session.consumer(queue, prefetch=0, order=Order.LOGICAL)
            for order in (None, None, "PHYSICAL", "PHYSICAL", None):
                assert consumer.receive(20, order=order) is not None
            assert written == [True, None, False, None, True]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"order": "SIDEWAYS"}, "'SIDEWAYS' is no order; there are PHYSICAL, LOGICAL"),
        ({"match": GetMatch(group_id=b"short")}, "a group id to match has 24 bytes, not 5"),
        ({"match": GetMatch(group_id=b"")}, "a group id to match has 24 bytes, not 0"),
        ({"match": GetMatch(group_sequence=0)}, "group_sequence 0 is to be matched"),
        ({"match": GetMatch(group_sequence=10**9)}, "group sequence 1000000000 is not within"),
        ({"match": GetMatch(offset=-1)}, "offset -1 is to be matched, must be at least 0"),
        ({"match": GetMatch(offset=2**53 + 1)}, "offset 9007199254740993 is not within"),
        ({"match": GetMatch(sequence=-1)}, "sequence -1 is to be matched, must be at least 0"),
        ({"match": GetMatch(message_id="xyz")}, "'xyz' is no message id"),
        ({"match": GetMatch(message_id=b"123")}, "is no message id: 16 bytes"),
    ],
)
def test_options_that_cannot_be_are_refused_where_they_are_given(connection, queue, settings, text):
    """By the consumer, a call, the browser and its calls; nothing is written."""
    with connection.session() as session:
        consumer, browser = session.consumer(queue, prefetch=0), session.browser(queue)
        for use in (session.consumer, session.browser, connection.browser):
            with pytest.raises(GetOptionsError) as raised:
                use(queue, **settings)
            assert text in str(raised.value)
        for call in (consumer.receive, browser.first, browser.next):
            with pytest.raises(GetOptionsError):
                call(**settings)


def test_logical_order_and_topics_or_individual_acknowledgement_do_not_go_together(
    connection, queue
):
    """Refused before anything is written, with what to do instead."""
    topic = queue.replace("queue:", "topic:")
    with connection.session(ack="INDIVIDUAL") as session:
        with pytest.raises(GetOptionsError, match="another acknowledge mode"):
            session.consumer(queue, order=Order.LOGICAL)
        consumer = session.consumer(queue, prefetch=0)
        with pytest.raises(GetOptionsError):
            consumer.receive(0, order=Order.LOGICAL)
        with pytest.raises(GetOptionsError):
            consumer.receive_group(0)
        with pytest.raises(GetOptionsError, match="messages of a topic are in no groups"):
            session.consumer(topic, complete_message=True)
        session.consumer(topic, prefetch=0).receive(0, order=Order.PHYSICAL)


# -- the message under the cursor ------------------------------------------------------------------


def test_the_message_under_the_cursor_is_got(connection, queue):
    """And the browse goes on behind it; a second get of it finds nothing and does not wait."""
    fill(connection, queue, "A", "B", "C")
    with connection.session() as session:
        browser = session.browser(queue)
        consumer = session.consumer(queue, prefetch=0)
        with pytest.raises(IllegalStateError, match="nothing was shown yet"):
            consumer.receive(under_cursor=browser)
        assert [browser.first().body, browser.next().body] == ["A", "B"]
        assert consumer.receive(under_cursor=browser).body == "B"
        assert consumer.receive(under_cursor=browser) is None
        assert browser.next().body == "C"
        for message in browser:
            if message.body == "C":
                assert consumer.receive(under_cursor=browser).body == "C"
        with pytest.raises(IllegalStateError, match="not both"):
            consumer.receive(under_cursor=browser, match=GetMatch(sequence=0))
        with pytest.raises(IllegalStateError, match="the cursor is on queue:"):
            session.consumer(queue + ".other", prefetch=0).receive(under_cursor=browser)
        assert consumer.receive(20).body == "A"


def test_grp_44_a_message_under_the_cursor_is_got_in_the_consumers_order(connection, queue):
    """MQRC 2246: in a group, in logical order, another message than the next is refused."""
    fill(connection, queue, "Y1{g=Y.1}", "Y2{g=Y.2!}", "B")
    with connection.session(transacted=True) as session:
        consumer = session.consumer(queue, prefetch=0, order=Order.LOGICAL)
        browser = session.browser(queue)
        assert [one.body for one in (browser.first(), browser.next())] == ["Y1", "Y2"]
        assert consumer.receive(20).body == "Y1"
        assert browser.next().body == "B"
        with pytest.raises(MatchOptionsError):
            consumer.receive(under_cursor=browser)
        with pytest.warns(IncompleteGroupWarning):
            found = consumer.receive(under_cursor=browser, order=Order.PHYSICAL)
        assert found.body == "B"


# -- warnings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "kind", "code"),
    [
        (("M1{g=G.1}", "N"), IncompleteGroupWarning, "incomplete-group"),
        (("S1{g=-S.1@0+5}", "N"), IncompleteMessageWarning, "incomplete-message"),
        (("S1{g=G.1@0+5}", "N"), IncompleteMessageWarning, "incomplete-message"),
    ],
)
def test_leaving_logical_order_inside_a_group_or_message_is_warned_of(
    connection, queue, words, kind, code
):
    """GRP-41, GRP-42: the get works all the same, and the warning is for the line that calls."""
    fill(connection, queue, *words)
    with connection.session() as session:
        consumer = session.consumer(queue, prefetch=0)
        assert consumer.receive(20, order=Order.LOGICAL) is not None
        with pytest.warns(kind) as told:
            assert consumer.receive(20).body == "N"
        assert [one.message.code for one in told] == [code]
        assert told[0].filename == __file__
        consumer.close()


def test_closing_a_consumer_inside_a_group_is_warned_of(connection, queue):
    """GRP-41: unless an error has led there, which is to be seen instead."""
    fill(connection, queue, "M1{g=G.1}", "M2{g=G.2}")
    with connection.session(transacted=True) as session:
        consumer = session.consumer(queue, order=Order.LOGICAL, prefetch=1)
        assert consumer.receive(20).body == "M1"
        with pytest.warns(IncompleteGroupWarning) as told:
            consumer.close()
        assert told[0].filename == __file__
        session.rollback()
    with warnings.catch_warnings(), connection.session(transacted=True) as session:
        warnings.simplefilter("error", ledgermq.LedgerMQWarning)
        with contextlib.suppress(KeyError), session.consumer(queue, order="LOGICAL") as consumer:
            assert consumer.receive(20).body == "M1"
            raise KeyError


def test_a_group_that_is_complete_or_was_never_entered_is_warned_of_nowhere(connection, queue):
    """Nor is one that goes on in logical order after a match, nor what a rollback undid."""
    fill(connection, queue, "M1{g=G.1}", "M2{g=G.2!}", "L4{g=L.4}", "L5{g=L.5!}", "X1{g=X.1}", "N")
    with warnings.catch_warnings(), connection.session(transacted=True) as session:
        warnings.simplefilter("error", ledgermq.LedgerMQWarning)
        with session.consumer(queue, prefetch=0) as consumer:
            for _ in range(2):
                assert consumer.receive(20, order=Order.LOGICAL) is not None
            match = GetMatch(group_id=group_id("L"), group_sequence=4)
            assert consumer.receive(20, match=match).body == "L4"
            assert consumer.receive(20, order=Order.LOGICAL).body == "L5"
            session.commit()
            assert consumer.receive(20, order=Order.LOGICAL).body == "X1"
            session.rollback()
            assert consumer.receive(20, match=GetMatch(sequence=5)).body == "N"
