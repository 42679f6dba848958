"""Ctrl-C at any moment of a call that gets messages: none is settled that nobody was given."""

import itertools
import sys

import pytest

import ledgermq
from ledgermq.client.receiving.consumer import _until_returned

MESSAGES = 4_000


def interrupted_at(moment, call):
    """What a call returns, or None if Ctrl-C ended it at that moment; whether it did.

    Python looks for signals where a function begins and where one has returned to it that is not
    written in Python, or that was called with `*args`.
    """
    moments = itertools.count(1)
    outmost = _until_returned.__code__.co_consts

    def look(frame, event, _):
        inside = "/ledgermq/client/" in frame.f_code.co_filename
        last = event == "return" and frame.f_code.co_name.startswith("receive")
        # Where the outmost part begins, nothing has been asked for yet.
        if not inside or frame.f_code in outmost or not (event in ("call", "c_return") or last):
            return
        if next(moments) == moment:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(look)
    try:
        return call(), False
    except KeyboardInterrupt:
        return None, True
    finally:
        sys.setprofile(None)


CALLS = {
    "receive": lambda consumer: [one] if (one := consumer.receive(0)) else [],
    "receive_many": lambda consumer: consumer.receive_many(3, 0),
    "receive_group": lambda consumer: consumer.receive_group(0),
}


@pytest.mark.parametrize("mode", ["AUTO", "DUPS_OK", "CLIENT", "TRANSACTED"])
@pytest.mark.parametrize("name", CALLS)
def test_what_an_interrupted_call_took_is_for_the_next_one(in_memory, name, mode):
    """It would be consumed unseen by the next commit, acknowledgement or receive."""
    bodies = [str(number) for number in range(MESSAGES)]
    with in_memory.session() as sending:
        sending.producer("queue:q").send_many(bodies)
    session = in_memory.session(ack=mode)
    grouped = {"order": ledgermq.Order.LOGICAL, "all_messages_available": True}
    options = grouped if name == "receive_group" else {}
    consumer = session.consumer("queue:q", prefetch=MESSAGES, **options)
    call, seen = CALLS[name], []
    seen += [one.body for one in call(consumer)]
    for moment in itertools.count(1):
        got, was_interrupted = interrupted_at(moment, lambda: call(consumer))
        seen += [one.body for one in got or call(consumer)]
        if mode == "TRANSACTED":
            session.commit()
        elif mode == "CLIENT":
            session.acknowledge()
        if not was_interrupted:
            break
    assert moment > 10
    assert seen == bodies[: len(seen)]
    session.close()
    with in_memory.session() as rest, rest.consumer("queue:q", prefetch=MESSAGES) as left:
        assert [one.body for one in left.until_idle(0)] == bodies[len(seen) :]


def test_a_commit_after_an_interrupted_one_commits_what_that_did_not_write(in_memory):
    """It would commit nothing, and say that it worked."""
    session = in_memory.session(transacted=True)
    consumer = session.consumer("queue:q", prefetch=MESSAGES)
    with in_memory.session() as sending:
        sending.producer("queue:q").send_many(str(number) for number in range(MESSAGES))
    for moment in itertools.count(1):
        assert consumer.receive(0) is not None
        _, was_interrupted = interrupted_at(moment, session.commit)
        session.commit()
        if not was_interrupted:
            break
    assert moment > 10
    session.close()
    with in_memory.session() as looking:
        assert looking.consumer("queue:q").receive(0).body == str(moment)
