"""Temporary destinations, requests and replies (SES-39)."""

import asyncio
import threading

import pytest

import ledgermq


def answer_one(connection, queue, body):
    """Answers the next request on a queue, in a thread of its own."""

    def work():
        with connection.session() as session:
            request = session.consumer(queue).receive(20)
            session.reply(request, f"{body} {request.body}")

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_a_request_gets_its_reply(place, queue):
    """Over a temporary queue of the asker, by correlation id."""
    with place.connect() as asking, place.connect() as answering:
        thread = answer_one(answering, queue, "hello")
        with asking.session() as session, session.requestor(queue) as requestor:
            reply = requestor.request("world", timeout=20)
        thread.join(20)
    assert reply.body == "hello world"


def test_a_requestor_whose_reply_is_not_acknowledged_can_be_closed_afterwards(connection, queue):
    """Its temporary queue is there until then, and gone once it could be closed."""
    answer_one(connection, queue, "re")
    with connection.session(ack="CLIENT") as session:
        requestor = session.requestor(queue)
        reply = requestor.request("x", timeout=20)
        with pytest.raises(ledgermq.DestinationInUseError):
            requestor.close()
        reply.acknowledge()
        requestor.close()
        requestor.close()
        with pytest.raises(ledgermq.TemporaryDestinationDeletedError):
            session.consumer(requestor.reply_to)


def test_a_coroutine_s_requestor_can_be_closed_afterwards_too(run, place, queue):
    """As one of a thread."""

    async def work(connection):
        async with connection.session(ack="CLIENT") as session:
            requestor = await session.requestor(queue)
            reply = await requestor.request("x", timeout=20)
            with pytest.raises(ledgermq.DestinationInUseError):
                await requestor.close()
            await reply.acknowledge()
            await requestor.close()
            await requestor.close()
            with pytest.raises(ledgermq.TemporaryDestinationDeletedError):
                await session.consumer(requestor.reply_to)

    with place.connect() as answering:
        answer_one(answering, queue, "re")
        run(work)


def answer_late(session, requests):
    """Answers a request that was given up, and then the next one."""
    for text in ("late", "in time"):
        session.reply(requests.receive(20), text)


@pytest.mark.parametrize("mode", ["AUTO", "CLIENT", "INDIVIDUAL"])
def test_a_reply_that_came_too_late_is_in_nobody_s_way(place, queue, mode):
    """Its asker never sees it, and so could not acknowledge it: the requestor does."""
    with place.connect() as asking, place.connect() as answering, answering.session() as answers:
        requests = answers.consumer(queue)
        with asking.session(ack=mode) as session, session.requestor(queue) as requestor:
            assert requestor.request("a", timeout=0) is None
            thread = threading.Thread(target=answer_late, args=(answers, requests))
            thread.start()
            reply = requestor.request("b", timeout=20)
            thread.join(20)
            assert reply.body == "in time"
            reply.acknowledge()


def test_a_coroutine_s_late_reply_is_in_nobody_s_way_either(run, place, queue):
    """As that of a thread."""

    async def work(connection):
        async with (
            connection.session(ack="INDIVIDUAL") as session,
            session.requestor(queue) as requestor,
        ):
            assert await requestor.request("a", timeout=0) is None
            threading.Thread(target=answer_late, args=(answers, requests)).start()
            reply = await requestor.request("b", timeout=20)
            await reply.acknowledge()
            return reply.body

    with place.connect() as answering, answering.session() as answers:
        requests = answers.consumer(queue)
        assert run(work) == "in time"


def test_two_coroutines_do_not_share_a_requestor(run, queue):
    """The one would take the reply of the other, which would wait in vain."""

    async def work(connection):
        async with connection.session() as session, session.requestor(queue) as requestor:
            asking = asyncio.create_task(requestor.request("a", timeout=2))
            await asyncio.sleep(0)
            with pytest.raises(ledgermq.IllegalStateError, match="a requestor for each"):
                await requestor.request("b", timeout=2)
            assert await asking is None
            return await requestor.request("c", timeout=0)

    assert run(work) is None


def test_what_a_requestor_s_block_raises_is_not_hidden_by_its_close(connection, queue):
    """The reply that it was about is not acknowledged, so that the close is refused."""
    answer_one(connection, queue, "re")

    def work(requestor):
        with requestor:
            requestor.request("x", timeout=20)
            raise ZeroDivisionError

    with connection.session(ack="CLIENT") as session, pytest.raises(ZeroDivisionError):
        work(session.requestor(queue))


REQUESTS = {
    "as an argument": ("x", {"correlation_id": "case 7"}),
    "of a message": (ledgermq.TextMessage("x", correlation_id="case 7"), {}),
}


@pytest.mark.parametrize(("body", "fields"), REQUESTS.values(), ids=REQUESTS)
def test_a_request_with_a_correlation_id_of_its_own_gets_its_reply(place, queue, body, fields):
    """The answer bears the id that the request had."""
    with place.connect() as asking, place.connect() as answering:
        thread = answer_one(answering, queue, "re")
        with asking.session() as session, session.requestor(queue) as requestor:
            reply = requestor.request(body, timeout=20, **fields)
        thread.join(20)
    assert (reply.body, reply.correlation_id) == ("re x", "case 7")


def test_a_coroutine_s_request_with_a_correlation_id_of_its_own_gets_its_reply(run, place, queue):
    """As one of a thread."""

    async def work(connection):
        async with connection.session() as session, session.requestor(queue) as requestor:
            body, fields = REQUESTS["of a message"]
            return (await requestor.request(body, timeout=20, **fields)).body

    with place.connect() as answering:
        thread = answer_one(answering, queue, "re")
        assert run(work) == "re x"
        thread.join(20)


def test_a_requestor_that_is_closed_sends_no_request(connection, run, queue):
    """Nobody would get the answer; that of a coroutine was sent all the same."""

    async def work(connection):
        async with connection.session() as session:
            requestor = await session.requestor(queue)
            await requestor.close()
            with pytest.raises(ledgermq.IllegalStateError, match="the requestor is closed"):
                await requestor.request("x", timeout=2)

    run(work)
    with connection.session() as session:
        requestor = session.requestor(queue)
        requestor.close()
        with pytest.raises(ledgermq.IllegalStateError, match="the requestor is closed"):
            requestor.request("x", timeout=2)
        assert session.producer(queue).send("next").sequence == 0


def test_a_request_that_nobody_answers_ends_with_its_time_out(connection, queue):
    """And a reply to an earlier request is left aside."""
    with connection.session() as session, session.requestor(queue) as requestor:
        assert requestor.request("lost", timeout=0.2) is None
        with connection.session() as answering:
            first = answering.consumer(queue).receive(20)
            answering.reply(first, "too late")
        assert requestor.request("again", timeout=0.3) is None


def test_a_request_in_a_transacted_session_is_refused(connection, queue):
    """It would wait for a reply to what it has not sent."""
    refused = pytest.raises(ledgermq.IllegalStateError, match="transacted")
    with connection.session(transacted=True) as session, refused:
        session.requestor(queue)


def test_a_message_without_reply_to_cannot_be_replied_to(connection, queue):
    """Nobody waits for the answer."""
    with connection.session() as session:
        session.producer(queue).send("x")
        with pytest.raises(ledgermq.IllegalStateError, match="reply_to"):
            session.reply(session.consumer(queue).receive(20), "y")


@pytest.mark.parametrize("kind", ["temporary_queue", "temporary_topic"])
def test_a_temporary_destination_ends_with_its_connection(place, kind):
    """Not with the session that made it; then it is unknown to everybody (SES-39)."""
    with place.connect() as other, other.session() as sender:
        with place.connect() as owner:
            with owner.session() as session:
                destination = getattr(session, kind)()
            with owner.session() as session:
                consumer = session.consumer(destination)
                sender.producer(destination).send("x")
                assert consumer.receive(20).body == "x"
        with pytest.raises(ledgermq.InvalidDestinationError):
            sender.producer(destination).send("y")


@pytest.mark.parametrize("kind", ["temporary_queue", "temporary_topic"])
def test_a_temporary_destination_can_be_deleted_earlier(connection, kind):
    """But not while a consumer uses it (SES-39)."""
    with connection.session() as session:
        destination = getattr(session, kind)()
        consumer = session.consumer(destination)
        with pytest.raises(ledgermq.DestinationInUseError):
            session.delete_temporary(destination)
        consumer.close()
        session.delete_temporary(destination)
        with pytest.raises(ledgermq.InvalidDestinationError):
            session.consumer(destination)


def test_only_its_own_connection_gets_from_a_temporary_queue(place):
    """Others may send to it (SES-39)."""
    with place.connect() as owner, place.connect() as other, owner.session() as session:
        destination = session.temporary_queue()
        elsewhere = other.session()
        with pytest.raises(ledgermq.LedgerMQError) as caught:
            elsewhere.consumer(destination)
        assert caught.value.code == "temporary-foreign"
        elsewhere.producer(destination).send("x")
        assert session.consumer(destination).receive(20).body == "x"


def test_what_is_not_temporary_is_not_deleted_as_such(connection, queue):
    """A queue goes by administration."""
    with connection.session() as session, pytest.raises(ledgermq.IllegalStateError):
        session.delete_temporary(queue)
    with connection.session() as session:
        for text in ("nowhere", "other:temporary/x"):
            with pytest.raises(ledgermq.InvalidDestinationError):
                session.delete_temporary(text)
