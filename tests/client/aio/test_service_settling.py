"""How a service settles messages: what may come between ends none of it, and loses no message."""

import asyncio

import pytest

from ledgermq import TemporaryDestinationDeletedError, aio
from support.brokers.serving import served_until_empty
from support.messages.bodies import put

WHO = {"actor": "op", "reason": "test"}


def test_a_reason_that_is_no_text_is_spelled_out(service, own_connection, queue, dead, caplog):
    """What it quotes, such as the name of a file, may have bytes of another encoding."""
    put(own_connection, queue, "a", "b")

    @service.consumer(queue)
    async def take(message):
        if message.body == "a":
            raise aio.MessageRejectedError("caf\udce9.txt " + "x" * 2_000)

    served_until_empty(service, own_connection, queue)
    assert [one.body for one in own_connection.browser(dead)] == ["a"]
    assert "caf\\udce9.txt" in caplog.text


class NoSuchCustomerError(aio.MessageRejectedError):
    """One that calls no `__init__` of the class that it is derived from."""

    def __init__(self, number):
        self.number = number


class UnspeakableError(aio.MessageRejectedError):
    """One that cannot say why."""

    def __str__(self):
        raise ValueError("there is nothing to say")


def turned_round():
    """A rejection that was given a delay when it was made already."""
    error = aio.MessageRejectedError("busy")
    error.delay = 5
    return error


WRONG = {
    "a flag that is none": lambda: aio.MessageRejectedError("busy", requeue=1, delay=5),
    "a delay that it may not have": turned_round,
    "no text": lambda: UnspeakableError("busy"),
}


@pytest.mark.parametrize("made", WRONG.values(), ids=WRONG)
def test_a_rejection_that_cannot_be_is_a_failure_like_others(
    service, own_connection, queue, named, dead, made
):
    """It ended the service with all its functions, and again after each restart."""
    own_connection.admin.alter_queue(named, redelivery_limit=1)
    put(own_connection, queue, "a", "b")

    @service.consumer(queue, redelivery_delay_ms=0)
    async def take(message):
        if message.body == "a":
            raise made()

    served_until_empty(service, own_connection, queue)
    (failed,) = own_connection.browser(dead)
    assert (failed.body, failed.origin.reason) == ("a", "redelivery-limit")


def test_a_rejection_of_a_derived_class_needs_no_arguments(service, own_connection, queue, dead):
    """It rejects its message, as one that was given none."""
    put(own_connection, queue, "a", "b")

    @service.consumer(queue)
    async def take(message):
        if message.body == "a":
            raise NoSuchCustomerError(4711)

    served_until_empty(service, own_connection, queue)
    (rejected,) = own_connection.browser(dead)
    assert (rejected.body, rejected.origin.reason) == ("a", "rejected")


@pytest.mark.parametrize("transacted", [True, False])
@pytest.mark.parametrize("rejects", [True, False])
def test_a_service_goes_on_though_a_message_was_taken_away(
    service, own_connection, queue, named, dead, caplog, rejects, transacted
):
    """By administration, or a time limit: the log of the service says so."""
    put(own_connection, queue, "a", "b")

    async def take(message):
        if message.body == "a":
            correct = own_connection.admin.correct
            await asyncio.to_thread(correct, named, sequence=0, action="REMOVE", **WHO)
            if rejects:
                raise aio.MessageRejectedError("no such customer")

    async def take_in_a_unit_of_work(message, session):
        await take(message)

    service.consumer(queue, transacted=transacted)(take_in_a_unit_of_work if transacted else take)
    served_until_empty(service, own_connection, queue)
    assert list(own_connection.browser(dead)) == []
    assert "was taken away" in caplog.text or "was rolled back" in caplog.text


def test_a_function_that_sends_more_than_a_segment_holds_has_failed(
    service, own_connection, queue, named, dead
):
    """Its message goes back, and to the error destination in the end (DB-09)."""
    own_connection.admin.alter_queue(named, redelivery_limit=1)
    put(own_connection, queue, "a", "b")

    @service.consumer(queue, transacted=True, redelivery_delay_ms=0)
    async def take(message, session):
        if message.body == "a":
            producer = session.producer(f"{queue}.out")
            for _ in range(20):
                await producer.send(bytes(900_000))

    served_until_empty(service, own_connection, queue)
    (failed,) = own_connection.browser(dead)
    assert (failed.body, failed.origin.reason) == ("a", "redelivery-limit")
    assert list(own_connection.browser(f"{queue}.out")) == []


@pytest.mark.parametrize("transacted", [True, False])
def test_in_a_protected_queue_each_function_is_called_once_and_waits_for_its_turn(
    service, own_connection, queue, named, transacted
):
    """A quick one behind a slow one is settled after it, and not delivered again (DB-22)."""
    own_connection.admin.create_queue(named, fifo_mode="PROTECTED")
    put(own_connection, queue, *"abcd")
    seen = []

    async def take(message):
        seen.append(message.body)
        if message.body == "a":
            await asyncio.sleep(0.5)

    async def take_in_a_unit_of_work(message, session):
        await take(message)

    service.consumer(queue, concurrency=3, transacted=transacted, redelivery_delay_ms=0)(
        take_in_a_unit_of_work if transacted else take
    )
    served_until_empty(service, own_connection, queue)
    assert sorted(seen) == ["a", "b", "c", "d"]


def test_a_request_whose_asker_is_gone_is_worked_on_once(place, service, own_connection, queue):
    """Its function learns of it before the commit, which goes on without the answer (SES-39)."""
    with place.connect() as gone, gone.session() as session:
        session.requestor(queue).request("a", timeout=0)
    unanswered = []

    @service.consumer(queue, transacted=True, redelivery_delay_ms=0)
    async def take(request, session):
        await session.reply(request, "b")
        try:
            await session.flush()
        except TemporaryDestinationDeletedError:
            unanswered.append((request.body, request.delivery_count))

    served_until_empty(service, own_connection, queue)
    assert unanswered == [("a", 1)]
