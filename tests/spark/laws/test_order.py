"""Law F: each log is as it is due, and not so when one thing in it is told otherwise."""

import json
import random
from collections import defaultdict

import pytest

from ledgermq.protocol.get_options import Options
from support.audits.engines import duck_engine
from support.audits.tampering import other, without
from support.audits.testimonies import COLUMNS, Logs
from support.brokers.log_writer import Entry
from support.brokers.log_writer import Script as Written
from support.checkout import SCRIPTS
from support.random_logs.random_log import RandomLog
from support.scripts.play import play
from support.scripts.script import read_scripts, scripts_at

PLAIN = """
open CLIENT
consumer 1 q
put q M*3 -> enqueued 0..2
get 1 -> accepted; delivered M0@0
"""
FEWEST = """
A: open CLIENT
A: consumer 1 q
A: get 9
B: open CLIENT
B: consumer 1 q
B: get 9
A: put q M*2 -> enqueued 0..1; delivered M0@0; B: delivered M1@1
"""
SELECTED = """
open CLIENT
consumer 1 q selector=color=="red"
put q A{color=blue} B{color=red} -> enqueued 0..1
get 1 -> accepted; delivered B@1
"""
DISABLED = """
open CLIENT
create q
alter q gets_disabled=no
consumer 1 q
put q A -> enqueued 0..0
get 1 -> accepted; delivered A@0
"""
LIMITED = """
open CLIENT
create q unacked_max=2
consumer 1 q
put q A B C -> enqueued 0..2
get 9 -> accepted; delivered A@0 B@1
"""
SUSPECTED = """
A: open CLIENT timeout=1000
A: consumer 1 q
A: get 9
suspect A -> A: suspected
B: open
B: put q A -> enqueued 0..0
"""
ENDED = """
A: open TRANSACTED
A: consumer 1 q
A: put q A
B: open CLIENT
B: put q B -> enqueued 0..0
B: rollback-transaction A
A: get 1
"""
DOUBTFUL = """
A: open timeout=1000
A: consumer 1 q
A: put q M N -> enqueued 0..1
A: get 2 -> accepted; delivered M@0 N@1
suspect A -> A: suspected
tick +1s -> A: ended LOST returned=2
B: open
B: consumer 1 q
B: get 9 -> accepted; delivered in-doubt M@0+1
"""
LOGICAL = """
open CLIENT
put q A Z2{g=Z.2!} Y1{g=Y.1} Z1{g=Z.1} Y2{g=Y.2!} -> enqueued 0..4
consumer 1 q
get 9 logical -> accepted; delivered A@0 Y1@2 Y2@4 Z1@3 Z2@1
"""
RESERVED = """
A: open CLIENT
A: put q Y1{g=Y.1} Y2{g=Y.2!} N -> enqueued 0..2
A: consumer 1 q
A: get 1 logical -> accepted; delivered Y1@0
B: open CLIENT
B: consumer 1 q
B: get 9 -> accepted; delivered N@2
"""
INCOMPLETE = """
open CLIENT
put q Y1{g=Y.1} -> enqueued 0..0
consumer 1 q
get 9 all
"""
SEGMENTS = """
open CLIENT
put q A{g=Y.1@0+10} B{g=Y.1@10+5!} -> enqueued 0..1
consumer 1 q
get 1 complete -> accepted; delivered A@0 B@1
"""
BONDED = """
A: open CLIENT
B: open CLIENT
A: create q affinity=yes
A: consumer 1 q
B: consumer 1 q
A: get 1
A: put q M0{JMSXGroupID=x} -> enqueued 0..0; delivered M0@0
B: get 9
A: put q M1{JMSXGroupID=x} N -> enqueued 1..2; B: delivered N@2
"""
KEPT_BACK = """
A: open CLIENT redelivery=5s
A: create q keeps_group_order=yes
A: put q M0{JMSXGroupID=x} M1{JMSXGroupID=x} N0{JMSXGroupID=y} -> enqueued 0..2
A: consumer 1 q
A: get 1 -> accepted; delivered M0@0
A: recover 1 -> returned 1
A: get 9 -> accepted; delivered N0@2
"""
STANDING_BY = """
A: open CLIENT
A: create q single_active=yes
A: consumer 1 q
A: get 9
B: open CLIENT
B: consumer 1 q
B: get 9
A: put q M N -> enqueued 0..1; A: delivered M@0 N@1
"""
SHARED_OUT = STANDING_BY.replace("single_active=yes", "single_active=no").replace(
    "M@0 N@1", "M@0; B: delivered N@1"
)
CROWDED = """
open CLIENT
create q available_max=2
consumer 1 q
get 1
put q A B C D E -> enqueued 0..4; delivered A@0
"""
SUPERSEDED = """
open
create q last_value_key=color
put q A{color=red} B{color=blue} C{color=red} D -> enqueued 0..3
"""
PRECEDING = """
A: open CLIENT
A: consumer 1 q
A: get 9
B: open CLIENT
B: consumer 1 q priority=1
B: get 1
A: put q M N -> enqueued 0..1; B: delivered M@0; A: delivered N@1
"""
SERIALIZED = """
open CLIENT
create q fifo_mode=SERIALIZED
put q A B -> enqueued 0..1
consumer 1 q
get 2 -> accepted; delivered A@0
"""
SETTLED = """
A: open CLIENT
A: create q
A: put q A B -> enqueued 0..1
A: consumer 1 q
A: get 2 -> accepted; delivered A@0 B@1
A: ack 2
"""
PARKED = """
open CLIENT
create dead
create q limit=0 error_destination=queue:dead keeps_group_order=yes
put q A{JMSXGroupID=x} B{JMSXGroupID=x} C -> enqueued 0..2
consumer 1 q
get 1 -> accepted; delivered A@0
recover 1 -> returned 1
"""
GROUPED = """
open CLIENT
put q Y1{g=Y.1,ordered=yes} -> enqueued 0..0
put q Y2{g=Y.2,ordered=yes} -> enqueued 1..1
put q Y2{g=Y.2} -> refused group-clash
"""
UNITS = """
A: open CLIENT
B: open TRANSACTED
A: put q Y1{g=Y.1} -> enqueued 0..0
B: put q Y2{g=Y.2} Z1{g=Z.1} -> accepted warning=unit-of-work-inconsistent
B: put q Y3{g=Y.3,ordered=yes} -> refused unit-of-work-inconsistent
B: put q Z1{g=Z.1} -> refused group-clash
B: put q Z2{g=Z.2,ordered=yes}
"""
INSIDE = """
open CLIENT
put q Y1{g=Y.1} Y2{g=Y.2} -> enqueued 0..1
consumer 1 q
get 1 logical -> accepted; delivered Y1@0
get 2 logical seq=3 -> refused match-options-invalid
get 3 logical seq=2 -> accepted; delivered Y2@1
"""
OUT = "unacknowledged"
NO_IDS = {"message_id": "", "group_id": ""}


def created(**settings):
    """Return what lets the queue be created with other settings."""
    return other("operations", {"kind": "CreateQueue"}, settings=json.dumps(settings))


def single_active(on):
    """Return what gives the queue one active consumer, or none."""
    return created(single_active_consumer=on)


def get(**values):
    """Return what lets the first Get ask for something else."""
    return other("operations", {"kind": "Get"}, **values)


def placed(number, **told):
    """Return the header of a place in group Y."""
    place = {"i": "59" + "00" * 23, "n": number, "o": 0, "l": 0, "f": "g"}
    return json.dumps({"p": {}, "c": None, "t": None, "g": place, **told}, separators=(",", ":"))


def matching(number):
    """Return options that ask for a number in logical order."""
    return json.dumps(Options(logical_order=True, group_sequence=number).record() | NO_IDS)


# A log, what is told otherwise of it, and what the law finds then.
TAMPERED = {
    "the second message before the first": (
        PLAIN,
        other("moves", {"after": OUT}, sequence=1),
        "reordered",
    ),
    "credit for one more": (PLAIN, get(number=2), "lost"),
    "no credit": (PLAIN, get(number=0), "unexpected"),
    "a message of higher priority": (
        PLAIN,
        other("operations", {"kind": "Put"}, priorities=[4, 4, 9]),
        "reordered",
    ),
    "a consumer that has more in flight": (
        FEWEST,
        other("moves", {"after": OUT, "sequence": 1}, session=0, delivery=2),
        "reordered",
    ),
    "another selector": (
        SELECTED,
        other("operations", {"kind": "OpenConsumer"}, selector="color = 'green'"),
        "unexpected",
    ),
    "no selector": (
        SELECTED,
        other("operations", {"kind": "OpenConsumer"}, selector=""),
        "reordered",
    ),
    "gets disabled": (
        DISABLED,
        other("operations", {"kind": "AlterQueue"}, flag=True),
        "unexpected",
    ),
    "a lower limit": (
        LIMITED,
        other("operations", {"kind": "CreateQueue"}, unacknowledged_max=1),
        "unexpected",
    ),
    "no limit": (
        LIMITED,
        other("operations", {"kind": "CreateQueue"}, unacknowledged_max=0),
        "lost",
    ),
    "a session that nobody suspects": (SUSPECTED, without("outcomes", kind="Suspected"), "lost"),
    "a unit of work that nobody ended": (
        ENDED,
        without("operations", kind="RollbackTransaction"),
        "lost",
    ),
    "a message that is not in doubt": (
        DOUBTFUL,
        other("outcomes", {"kind": "SessionEnded"}, session_sequence=5),
        "lost",
    ),
    "no logical order": (LOGICAL, get(options=None), "reordered"),
    "no reservation": (RESERVED, get(options=None), "reordered"),
    "a group that need not be complete": (INCOMPLETE, get(options=None), "lost"),
    "segments for one credit each": (SEGMENTS, get(options=None), "unexpected"),
    "no group affinity": (
        BONDED,
        other("operations", {"kind": "CreateQueue"}, group_affinity=False),
        "reordered",
    ),
    "nobody stands by": (STANDING_BY, single_active(False), "reordered"),
    "a consumer that stands by": (SHARED_OUT, single_active(True), "unexpected"),
    "one more is kept": (CROWDED, created(available_max=3), "lost"),
    "one less is kept": (CROWDED, created(available_max=1), "lost"),
    "all are kept": (CROWDED, created(available_max=0), "lost"),
    "nothing is displaced": (CROWDED, without("moves", cause="displaced"), "unexpected"),
    "a newer one is displaced": (
        CROWDED,
        other("moves", {"cause": "displaced", "sequence": 1}, sequence=4),
        "lost",
    ),
    "who waits is given nothing": (CROWDED, get(number=2), "lost"),
    "no value is told apart": (SUPERSEDED, created(last_value_key=""), "lost"),
    "another key": (SUPERSEDED, created(last_value_key="JMSPriority"), "unexpected"),
    "older ones of a value stay": (SUPERSEDED, without("moves", cause="displaced"), "unexpected"),
    "the newest of a value goes": (
        SUPERSEDED,
        other("moves", {"cause": "displaced", "sequence": 0}, sequence=2),
        "lost",
    ),
    "one without a value goes": (
        SUPERSEDED,
        other("moves", {"cause": "displaced", "sequence": 0}, sequence=3),
        "lost",
    ),
    "a priority that does not count": (
        PRECEDING,
        other("operations", {"kind": "OpenConsumer"}, consumer_priority=1),
        "reordered",
    ),
    "a higher priority": (
        SHARED_OUT,
        other("operations", {"kind": "OpenConsumer"}, consumer_priority=1),
        "reordered",
    ),
    "no order of groups": (KEPT_BACK, created(keeps_group_order=False), "reordered"),
    "what does not follow a parked message": (
        PARKED,
        without("moves", cause="moved", sequence=1),
        "lost",
    ),
    "deliveries side by side": (SERIALIZED, created(), "lost"),
    "one delivery at a time": (SETTLED, created(fifo_mode="SERIALIZED"), "unexpected"),
    "a number that is there already": (
        GROUPED,
        other("operations", {"kind": "Put"}, headers=[placed(2)]),
        "unexpected",
    ),
    "another priority in the group": (
        GROUPED,
        other("operations", {"kind": "Put"}, priorities=[9]),
        "unexpected",
    ),
    "a clash of nothing": (
        GROUPED,
        other("operations", {"kind": "Put", "session_sequence": 3}, headers=[placed(3)]),
        "unexpected",
    ),
    "a clash that is told as another": (
        GROUPED,
        other("outcomes", {"reason": "group-clash"}, reason="unit-of-work-inconsistent"),
        "unexpected",
    ),
    "order kept in and outside of units of work": (
        UNITS,
        other(
            "operations",
            {"kind": "Put", "session": 1, "session_sequence": 1},
            headers=[placed(2, k=True), None],
        ),
        "unexpected",
    ),
    "another number in the unit of work": (
        UNITS,
        other(
            "operations",
            {"kind": "Put", "session": 1, "session_sequence": 1},
            headers=[placed(2), placed(3)],
        ),
        "unexpected",
    ),
    "another priority in the unit of work": (
        UNITS,
        other("operations", {"kind": "Put", "session": 1, "session_sequence": 4}, priorities=[9]),
        "unexpected",
    ),
    "another item than logical order brings": (
        INSIDE,
        other("operations", {"kind": "Get", "number": 3}, options=matching(3)),
        "unexpected",
    ),
    "the item that logical order brings": (
        INSIDE,
        other("operations", {"kind": "Get", "number": 2}, options=matching(2)),
        "unexpected",
    ),
    "settled out of turn": (SETTLED, created(fifo_mode="PROTECTED"), "reordered"),
}
CLEAN = {text for text, _, _ in TAMPERED.values()}
OTHERS = ("displacement", "group_order", "rejecting")
FLAVOURS = ({"groups": True}, {"topics": True, "redelivery": True}, {"ends": True, "moves": True})


def entries_of(text):
    """Return the log of a script."""
    (script,) = read_scripts("=== one\n" + text.strip())
    return [Entry(value=value, time_us=time) for value, time in play(script).log]


def clean_logs():
    """Yield logs with their names: scripts of the fold's tests beside those here, random ones."""
    for text in CLEAN:
        yield text, entries_of(text)
    for name in ("groups", "fifo", "single_active", "consumer_priority", *OTHERS):
        for script in scripts_at(SCRIPTS / f"{name}.txt"):
            log = play(script, checked=False).log
            yield f"{name}: {script.title}", [Entry(value=one, time_us=time) for one, time in log]
    for seed, flavour in enumerate(FLAVOURS):
        script = Written(random=random.Random(seed))
        RandomLog(script, **flavour).grow(120)
        yield f"random {seed}", script.entries


@pytest.fixture(scope="module")
def disorder(spark):
    """Return what is found of each log by its name, all in one run."""
    logs = Logs()
    for name, entries in clean_logs():
        logs.fold(name, entries)
    for name, (text, (which, change), _) in TAMPERED.items():
        one = Logs()
        one.fold(name, entries_of(text))
        change(one.rows[which], [column for column, _ in COLUMNS[which]])
        logs.add(one)
    found = defaultdict(set)
    for row in logs.facts(duck_engine()).rows("SELECT * FROM {disorder}"):
        found[row["queue_manager"]].add(row["kind"])
    return found


def test_what_the_fold_delivers_is_due(disorder):
    """Nothing is found of scripts about order, groups and FIFO modes, and of random logs (D10)."""
    assert {name: disorder[name] for name, _ in clean_logs() if disorder[name]} == {}


@pytest.mark.parametrize("name", TAMPERED)
def test_what_is_not_as_it_is_due_is_found(disorder, name):
    """The smallest thing that is otherwise is found, and what it is (D10)."""
    assert TAMPERED[name][2] in disorder[name]
