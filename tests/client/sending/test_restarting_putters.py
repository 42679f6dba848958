"""Tests of putters that put a group in several units of work, fail anywhere, and go on (E3, E4)."""

import contextlib
import itertools

import pytest

import ledgermq
from ledgermq import GroupPlace
from ledgermq.protocol.operations import Get
from ledgermq.testing import MemoryBroker
from support.messages.group_members import groups_of, members_of, only_group

SIZE = 9
UNIT = 3
# Without gets, each unit of work adds one segment of this many bytes.
STATUS_BYTES = 24 + 4


pytestmark = pytest.mark.usefixtures("warnings_are_faults")


def look_seconds(connection):
    """Returns how long to wait for a status that may not be there."""
    return 0.1 if "memory" in repr(connection) else 1.0


def send_units(group):
    """Sends what is left of the group; yields whether a unit of work is complete, and the last."""
    for number in range(group.group_sequence + 1, SIZE + 1):
        group.send(str(number), last=number == SIZE)
        yield number % UNIT == 0, number == SIZE


def put_with_gets(connection, session, target, status):
    """Puts the group, a message with its status in each unit of work (GRP-26..30); yields at each
    step, where it may fail.
    """
    saving, looking = session.producer(status), session.consumer(status, prefetch=1)
    saved = looking.receive(look_seconds(connection))
    yield "looked"
    begun = (None, 0)
    if saved is not None:
        begun = (saved.body["group_id"], saved.body["group_sequence"])
    with session.producer(target).group(*begun) as group:
        # The status was got already in the first unit of work of a putter that is started again.
        got = saved is not None
        first = saved is None
        for complete, last in send_units(group):
            yield f"put {group.group_sequence}"
            if not complete:
                continue
            if not got and not first:
                assert looking.receive(20).body["group_sequence"] == group.group_sequence - UNIT
                yield "got"
            if not last:
                saving.send({"group_id": group.group_id, "group_sequence": group.group_sequence})
                yield "saved"
            session.commit()
            got = first = False
            yield f"committed {group.group_sequence}"


def put_with_segments(connection, session, target, status):
    """The same, the status a message whose segments are put, and got only once whole (GRP-36)."""
    found = saved_segments(connection, status)
    yield "looked"
    saving, begun, segment = session.producer(status), (None, 0), None
    if found and found[-1]["last_segment"]:
        clear(session, status)
        found = []
    if found:
        status_id, body = found[-1]["group_id"], found[-1]["body"]
        begun = (body[:24], int.from_bytes(body[24:], "big"))
        # The offset is given once; behind it, logical order counts (GRP-37).
        end = found[-1]["offset"] + found[-1]["length"]
        segment = GroupPlace(group_id=status_id, offset=end, in_group=False, segment=True)
    with session.producer(target).group(*begun) as group:
        for complete, last in send_units(group):
            yield f"put {group.group_sequence}"
            if not complete:
                continue
            place = segment or GroupPlace(in_group=False, segment=True)
            if last:
                place = GroupPlace(
                    group_id=place.group_id,
                    offset=place.offset,
                    in_group=False,
                    last_segment=True,
                )
            body = group.group_id + group.group_sequence.to_bytes(4, "big")
            saving.send(body, group=place, logical_order=segment is None)
            segment = None
            yield "saved"
            session.commit()
            yield f"committed {group.group_sequence}"
    clear(session, status)
    yield "cleared"


def saved_segments(connection, status):
    """Returns the segments of the status in logical order, each with its body."""
    with contextlib.suppress(ledgermq.QueueNotFoundError):
        bodies = {one.sequence: one.body for one in connection.browser(status)}
        return [
            {**one, "group_id": bytes.fromhex(group["group_id"]), "body": bodies[one["sequence"]]}
            for group in groups_of(connection, status)
            for one in members_of(connection, status, bytes.fromhex(group["group_id"]))
        ]
    return []


def clear(session, status):
    """Gets the whole status with one get of complete messages, and commits (GRP-36)."""
    consumer = session.consumer(status, prefetch=1)
    options = {
        "logical_order": False,
        "all_messages_available": False,
        "all_segments_available": False,
        "complete_message": True,
        "message_id": b"",
        "correlation_id": None,
        "group_id": b"",
        "group_sequence": 0,
        "offset": -1,
        "sequence": -1,
    }
    core = session._engine
    with core.lock:
        number = consumer._shared.buffer.number
        pending = core.write_locked(Get, consumer=number, credit=0, options=options)
        core.run_locked(core.reply(pending))
    assert consumer.receive(20) is not None
    while consumer.receive(0) is not None:
        pass
    session.commit()
    consumer.close()


PUTTERS = {"gets": put_with_gets, "segments": put_with_segments}
STEPS = {"gets": 17, "segments": 17}


def run(connection, putter, target, status, steps=None):
    """Runs a putter in a session of its own, which ends without a commit behind so many steps."""
    with connection.session(transacted=True) as session:
        running = PUTTERS[putter](connection, session, target, status)
        done = list(itertools.islice(running, steps))
        running.close()
    return done


def committed_by(steps):
    """Returns up to which number the steps have committed the group."""
    numbers = [int(one.partition(" ")[2]) for one in steps if one.startswith("committed")]
    return max(numbers, default=0)


def check(connection, target, status, committed, group_id=None):
    """The target has the group up to that number, the status says so; see the table of E4."""
    bodies = [one.body for one in connection.browser(target)] if committed else []
    assert bodies == [str(number) for number in range(1, committed + 1)]
    if not committed:
        return None
    group = only_group(connection, target)
    assert group["complete"] == (committed == SIZE)
    assert group_id in (None, group["group_id"])
    assert group["last_group_sequence"] == (SIZE if committed == SIZE else 0)
    saved = list(connection.browser(status))
    if not saved or committed == SIZE:
        return group["group_id"]
    body = saved[-1].body
    if isinstance(body, bytes):
        assert [len(one.body) for one in saved] == [STATUS_BYTES] * (committed // UNIT)
        body = {"group_id": body[:24], "group_sequence": int.from_bytes(body[24:], "big")}
    assert (body["group_id"].hex(), body["group_sequence"]) == (group["group_id"], committed)
    return group["group_id"]


@pytest.mark.parametrize("putter", PUTTERS)
def test_a_group_is_put_in_three_units_of_work(connection, queue, putter):
    """E3: the status is empty once the group is complete, with gets (GRP-27..29) or without
    (GRP-36).
    """
    status = queue + ".status"
    steps = run(connection, putter, queue, status)
    assert [one for one in steps if one.startswith("committed")] == [
        "committed 3",
        "committed 6",
        "committed 9",
    ]
    assert len(steps) == STEPS[putter]
    check(connection, queue, status, SIZE)
    assert connection.admin.queue_status(status).message_count == 0


@pytest.mark.parametrize("steps", range(1, 18))
@pytest.mark.parametrize("putter", PUTTERS)
def test_a_putter_that_failed_goes_on_where_it_was(connection, queue, putter, steps):
    """E4: whatever it was doing, the target and the status agree, and the group becomes whole once
    (GRP-25, GRP-30, GRP-36).
    """
    status = queue + ".status"
    done = run(connection, putter, queue, status, steps)
    committed = committed_by(done)
    group_id = check(connection, queue, status, committed)
    if committed == SIZE:
        # The group is complete: started again it would put another one.
        status_count = connection.admin.queue_status(status).message_count
        assert status_count == (0 if putter == "gets" or done[-1] == "cleared" else 3)
        return
    run(connection, putter, queue, status)
    check(connection, queue, status, SIZE, group_id)
    assert connection.admin.queue_status(status).message_count == 0


@pytest.mark.parametrize("putter", PUTTERS)
def test_a_putter_may_fail_again_when_it_goes_on(connection, queue, putter):
    """E4: inside the unit of work of the restart, as often as it likes (GRP-30)."""
    status = queue + ".status"
    run(connection, putter, queue, status, 8)
    group_id = check(connection, queue, status, 3)
    for steps in (1, 3, 5):
        run(connection, putter, queue, status, steps)
        check(connection, queue, status, 3, group_id)
    run(connection, putter, queue, status, 6)
    check(connection, queue, status, 6, group_id)
    run(connection, putter, queue, status)
    check(connection, queue, status, SIZE, group_id)
    assert connection.admin.queue_status(status).message_count == 0


def test_a_restart_names_one_place_and_then_follows_logical_order(connection, queue):
    """E4 as IBM MQ says it: the first put with id and number, the others without (GRP-30)."""
    with connection.session(transacted=True) as session, session.producer(queue) as producer:
        first = producer.send("1", group=GroupPlace(), logical_order=True)
        for number in (2, 3):
            producer.send(str(number), group=GroupPlace(), logical_order=True)
        session.commit()
        with pytest.warns(ledgermq.IncompleteGroupWarning):
            producer.close()
    group_id = first.group.group_id
    with connection.session(transacted=True) as session, session.producer(queue) as producer:
        producer.send("4", group=GroupPlace(group_id=group_id, group_sequence=4))
        for number in (5, 6):
            place = GroupPlace(last_in_group=number == 6)
            receipt = producer.send(str(number), group=place, logical_order=True)
        session.commit()
    assert (receipt.group.group_id, receipt.group.group_sequence) == (group_id, 6)
    assert only_group(connection, queue)["complete"]


def test_a_connection_that_is_gone_leaves_what_it_committed():
    """E4, by a crash: the target has 1 to 3, the status says so, the putter goes on (GRP-25)."""
    broker = MemoryBroker()
    queue, status = "queue:target", "queue:status"
    with broker.connect() as survivor:
        for putter, steps_of in PUTTERS.items():
            target, saved = f"{queue}.{putter}", f"{status}.{putter}"
            dying = broker.connect()
            session = dying.session(transacted=True)
            running = steps_of(survivor, session, target, saved)
            for _ in range(9):
                next(running)
            session.flush()
            broker.crash(dying)
            broker.advance(60)
            group_id = check(survivor, target, saved, 3)
            run(survivor, putter, target, saved)
            check(survivor, target, saved, SIZE, group_id)
