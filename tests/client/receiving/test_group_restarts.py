"""Tests of getting a group in several units of work: status queue, crashes, restarts (GRP-31..35).

The getting application is written as the source has it, call by call.
"""

import pytest

from ledgermq import GetMatch, GroupStatus, Order
from support.messages.group_puts import fill, group_id, put

IN_GROUP = GroupStatus.MESSAGE_IN_GROUP
NINE = [f"M{number}" for number in range(1, 10)]
NINE_ITEMS = [f"M{number}{{g=G.{number}}}" for number in range(1, 9)] + ["M9{g=G.9!}"]


class KilledError(Exception):
    """The getting application was killed here."""


class Getter:
    """The getting application: at most 4 messages of a group in a unit of work.

    Attributes:
        steps: How many calls it may still make before it is killed; None: all.
        units: What each unit of work that was committed got, and what the status queue then holds.
    """

    def __init__(self, connection, queue, steps=None):
        self.connection = connection
        self.queue = queue
        self.steps = steps
        self.units = []
        self._in_unit = []

    def _step(self):
        if self.steps is not None:
            self.steps -= 1
            if self.steps < 0:
                raise KilledError

    def run(self):
        """One group, from its beginning or from where an earlier run was committed."""
        self.session = self.connection.session(transacted=True)
        self.consumer = self.session.consumer(self.queue, prefetch=0, complete_message=True)
        self.status = self.session.consumer(self.queue + ".status", prefetch=0)
        self.producer = self.session.producer(self.queue + ".status")
        status, messages = GroupStatus.MESSAGE_IN_GROUP, 0
        self._step()
        found = self.status.receive(0)
        if found is not None:
            # The group was terminated prematurely.
            match = GetMatch(
                group_id=found.body["group_id"], group_sequence=found.body["number"] + 1
            )
            status, messages = self._get(match=match), 1
        while status is IN_GROUP:
            while status is IN_GROUP and messages < 4:
                status, messages = self._get(order=Order.LOGICAL), messages + 1
            # The last message, or 4 messages have been retrieved.
            self._step()
            self.status.receive(0)
            held = None
            if status is IN_GROUP:
                held = {"group_id": self.last.group_id, "number": self.last.group_sequence}
                self._step()
                self.producer.send(held)
            self._commit(held)
            messages = 0
        if messages > 0:
            self._commit(None)
        self.session.close()

    def _get(self, **options):
        self._step()
        self.last = self.consumer.receive(20, **options)
        self._in_unit.append(self.last.body)
        return self.last.group_status

    def _commit(self, held):
        self._step()
        self.session.commit()
        self.units.append((self._in_unit, held and held["number"]))
        self._in_unit = []


def left_in(connection, queue):
    """The bodies of what is available."""
    return [one.body for one in connection.browser(queue)]


def test_e5_a_group_of_nine_is_got_in_three_units_of_work(connection, queue):
    """E5: the status queue holds (G,4), then (G,8), then nothing (GRP-32, GRP-35)."""
    fill(connection, queue, *NINE_ITEMS)
    getter = Getter(connection, queue)
    getter.run()
    assert getter.units == [(NINE[:4], 4), (NINE[4:8], 8), (NINE[8:], None)]
    assert (left_in(connection, queue), left_in(connection, queue + ".status")) == ([], [])


def test_e5_a_group_of_one_never_touches_the_status_queue(connection, queue):
    """E5: one unit of work, and nothing was put for a restart (GRP-33)."""
    fill(connection, queue, "M1{g=G.1!}")
    getter = Getter(connection, queue)
    getter.run()
    assert getter.units == [(["M1"], None)]
    status = connection.admin.queue_status((queue + ".status").partition(":")[2])
    assert status.next_sequence == 0


def test_e6_a_getter_goes_on_behind_what_it_committed(connection, queue):
    """E6: matches (G,5), gets 6 to 8 in logical order, then 9 (GRP-34)."""
    fill(connection, queue, *NINE_ITEMS)
    # Asks for the status, gets 4, looks for a status, puts (G,4), commits.
    first = Getter(connection, queue, steps=8)
    with pytest.raises(KilledError):
        first.run()
    first.session.close()
    assert first.units == [(NINE[:4], 4)]
    again = Getter(connection, queue)
    again.run()
    assert again.units == [(NINE[4:8], 8), (NINE[8:], None)]
    assert (left_in(connection, queue), left_in(connection, queue + ".status")) == ([], [])


def test_e6b_the_last_message_is_all_that_is_left(connection, queue):
    """E6b: group of 5, status (G,4): the loop is not entered."""
    fill(connection, queue, *NINE_ITEMS[:4], "M5{g=G.5!}")
    first = Getter(connection, queue, steps=8)
    with pytest.raises(KilledError):
        first.run()
    first.session.close()
    again = Getter(connection, queue)
    again.run()
    assert again.units == [(["M5"], None)]
    assert (left_in(connection, queue), left_in(connection, queue + ".status")) == ([], [])


def killed(place, connection, queue, eventually):
    """The process of the application is gone; what it held goes back when that is noticed."""
    if hasattr(place, "broker"):
        place.broker.crash(connection)
        return
    connection._running.stop(0.0)
    with place.connect() as other:
        names = [(queue + end).partition(":")[2] for end in ("", ".status")]
        eventually(
            lambda: not any(other.admin.queue_status(name).uncommitted_gets for name in names)
        )


@pytest.mark.parametrize("steps", range(1, 21))
def test_e6_whenever_the_getter_is_killed_it_gets_each_message_once(
    place, queue, steps, eventually
):
    """E6: killed before any of its calls, and once more at the same call of the restart."""
    if not hasattr(place, "broker") and steps not in (3, 7, 11, 16):
        pytest.skip("each takes the time in which a lost client is noticed")
    with place.connect() as connection:
        fill(connection, queue, *NINE_ITEMS)
        connection.admin.create_queue(queue + ".status")
    units = []
    for allowed in (steps, steps, None):
        connection = place.connect(suspect_timeout_seconds=1)
        getter = Getter(connection, queue, steps=allowed)
        try:
            getter.run()
        except KilledError:
            killed(place, connection, queue, eventually)
        units += getter.units
        done = [body for got, _ in units for body in got]
        if done == NINE:
            break
        with place.connect() as other:
            # What the status queue says is what was committed.
            status = [one.body["number"] for one in other.browser(queue + ".status")]
            assert status == ([len(done)] if done else [])
            assert left_in(other, queue) == NINE[len(done) :]
    assert done == NINE
    assert units[-1][1] is None


def test_two_getters_of_one_queue_get_whole_groups_each(connection, queue):
    """GRP-17: a group that one has begun is not for the other, though parts of it come later."""
    fill(connection, queue, "Y1{g=Y.1}", "Z1{g=Z.1}")
    with connection.session() as one, connection.session() as other, connection.session() as third:
        consumers = [
            session.consumer(queue, order=Order.LOGICAL, prefetch=1) for session in (one, other)
        ]
        found = [[consumer.receive(20)] for consumer in consumers]
        put(third, queue, "Z2{g=Z.2!}", "Y2{g=Y.2!}")
        for messages, consumer in zip(found, consumers, strict=True):
            messages.append(consumer.receive(20))
    assert [[one.body for one in messages] for messages in found] == [["Y1", "Y2"], ["Z1", "Z2"]]
    assert found[0][0].group_id == group_id("Y")
