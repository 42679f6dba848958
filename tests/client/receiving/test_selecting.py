"""Consumers and browsers with selectors (SES-35, SES-36, SES-40)."""

import pytest

import ledgermq

COLORS = ("red", "blue", "red", "green", "blue")


def fill(session, queue):
    """Messages of several colors, numbered from 0."""
    producer = session.producer(queue)
    for number, color in enumerate(COLORS):
        producer.send(str(number), properties={"color": color, "n": number})


def found(consumer, count):
    """The bodies of so many messages."""
    return [consumer.receive(20).body for _ in range(count)]


def test_a_consumer_gets_what_its_selector_matches(connection, queue):
    """The rest stays for others, in order (SES-35)."""
    with connection.session() as session:
        fill(session, queue)
        consumer = session.consumer(queue, selector="color = 'blue' OR n = 3")
        assert found(consumer, 3) == ["1", "3", "4"]
        assert consumer.receive(0) is None
        rest = session.consumer(queue)
        assert found(rest, 2) == ["0", "2"]


@pytest.mark.parametrize("selector", [None, "", "   "])
def test_a_blank_selector_selects_everything(connection, queue, selector):
    """No selector and a blank one are the same (SES-36)."""
    with connection.session() as session:
        fill(session, queue)
        assert found(session.consumer(queue, selector=selector), 5) == ["0", "1", "2", "3", "4"]


def test_a_selector_that_cannot_be_read_is_refused_with_its_place(connection, queue):
    """For consumers and browsers; the session stays usable (SES-35, SES-40)."""
    with connection.session() as session:
        session.producer(queue).send("x")
        for make in (session.consumer, session.browser):
            with pytest.raises(ledgermq.LedgerMQError, match="position 8") as caught:
                list(make(queue, selector="color = ") or ())
            assert caught.value.code == "selector-invalid"
        assert found(session.consumer(queue), 1) == ["x"]


def test_a_browser_shows_what_its_selector_matches(connection, queue):
    """Nothing is taken (SES-40)."""
    with connection.session() as session:
        fill(session, queue)
        shown = [one.body for one in session.browser(queue, selector="n BETWEEN 1 AND 3")]
        assert shown == ["1", "2", "3"]
        assert [one.body for one in connection.browser(queue, selector="color='red'")] == ["0", "2"]
        assert len(list(session.browser(queue))) == 5


def test_header_fields_can_be_selected_by(connection, queue):
    """Priority, correlation id, type and identity (SES-35)."""
    with connection.session() as session:
        producer = session.producer(queue)
        first = producer.send("1", priority=9, correlation_id="c")
        producer.send("2", type="order")
        for selector, body in (
            ("JMSPriority > 5", "1"),
            ("JMSCorrelationID = 'c'", "1"),
            ("JMSType LIKE 'ord%'", "2"),
            (f"JMSMessageID = 'ID:{first.message_id}'", "1"),
        ):
            assert [one.body for one in session.browser(queue, selector=selector)] == [body]


def test_what_a_selecting_consumer_gives_back_others_get(connection, queue):
    """After a recover by whoever matches, at its place."""
    with connection.session(ack=ledgermq.AckMode.CLIENT) as session, connection.session() as other:
        fill(session, queue)
        consumer = session.consumer(queue, selector="color = 'red'")
        assert found(consumer, 2) == ["0", "2"]
        session.recover()
        consumer.close()
        assert found(other.consumer(queue), 5) == ["0", "1", "2", "3", "4"]
