"""Faults to be planted in the fold: sessions, settlements, delivery, the journal, the clock."""

from __future__ import annotations

from typing import Any

from ledgermq.core import clock, moves, unit_limits
from ledgermq.core.delivery import delivering as delivery
from ledgermq.core.delivery import redelivery, settling
from ledgermq.core.destinations import temporaries
from ledgermq.core.manual import message_operations
from ledgermq.core.puts import putting
from ledgermq.core.sessions import consumers, sessions
from ledgermq.core.state.journal import Journal
from ledgermq.core.structures.available import Available
from support.generators.clock_generators import clock_histories
from support.generators.generators import MUCH_REJECTED, informed_histories
from support.planted.planted_faults import Family, Fault, does_nothing, drawn, played_in


def _forgetful_backout(original: Any) -> Any:
    return lambda entry, session, delivery, *, backed_out, **more: original(
        entry, session, delivery, backed_out=False, **more
    )


def _always_backout(original: Any) -> Any:
    return lambda entry, session, delivery, *, backed_out: original(
        entry, session, delivery, backed_out=True
    )


def _reversed(original: Any) -> Any:
    return lambda self, messages: original(self, list(messages)[::-1])


def _gap(original: Any) -> Any:
    def enqueue(entry, target, messages, before, session=None):
        target.next_sequence += 1
        return original(entry, target, messages, before, session)

    return enqueue


def _greedy(original: Any) -> Any:
    return lambda self, count, available=-1: original(self, count + 1, available)


def _one_too_few(original: Any) -> Any:
    return lambda self, count, available=-1: original(self, count, available)[:-1]


def _keeps_puts(original: Any) -> Any:
    return lambda entry, session: 0


def _if_it_began(original: Any) -> Any:
    def restart(state, session, active):
        if not session.open_puts and not session.deliveries:
            original(state, session, active)

    return restart


def _longer(original: Any) -> Any:
    return max


def _later(original: Any) -> Any:
    return lambda state, session, due: original(state, session, due + 50_000)


def _offered(original: Any) -> Any:
    return lambda entry, message, flight: redelivery.back_out(entry, message, flight, -1)


def _as_settings_say(original: Any) -> Any:
    return lambda entry, message, flight, delay_ms: original(entry, message, flight, -1)


def _as_too_often(original: Any) -> Any:
    return lambda entry, message, destination, reason: original(
        entry, message, destination, "redelivery-limit" if reason == "rejected" else reason
    )


def _all_count(original: Any) -> Any:
    return lambda message: message.backout_count


def _shorter(original: Any) -> Any:
    return lambda message, consumer: original(message, consumer) // 2


def _tells_of_one(original: Any) -> Any:
    def tell_handing(entry, session, delivery):
        before = dict(session.handed_doubts)
        original(entry, session, delivery)
        for number in [one for one in session.handed_doubts if one not in before]:
            if number != delivery:
                del session.handed_doubts[number]

    return tell_handing


def _nobody(original: Any) -> Any:
    return lambda *_: {}


def _stays_on(original: Any) -> Any:
    return lambda self, position, *, on: original(self, position, on=True)


def _full_pace(original: Any) -> Any:
    return (1, 1)


def _ten_times(original: Any) -> Any:
    return original * 10


STAYS_KNOWN = Fault("what left a queue is still known to it", moves, "_take_out", does_nothing)
FOLD = Family(
    "fold",
    (
        Fault(
            "backouts that do not count are counted to the limit",
            redelivery,
            "_counted_backouts",
            _all_count,
            8,
        ),
        Fault(
            "steps of the redelivery delay are skipped", redelivery, "_step_for", does_nothing, 1
        ),
        Fault("redelivery delays are halved", redelivery, "_delay_ms", _shorter),
        Fault("what came too often is lost on its way", redelivery, "transfer", does_nothing, 5),
        Fault("what was seen is not backed out", settling, "give_back", _forgetful_backout),
        Fault("what was not seen is backed out", settling, "give_back", _always_backout),
        Fault(
            "deliveries that a consumer gives back are not checked",
            consumers,
            "check_deliveries",
            does_nothing,
            3,
        ),
        Fault(
            "acknowledged deliveries are not checked", settling, "check_deliveries", does_nothing
        ),
        Fault(
            "deliveries of a commit, rollback or close are not checked",
            sessions,
            "check_deliveries",
            does_nothing,
        ),
        Fault("new messages are available in reverse", Available, "extend", _reversed),
        Fault("what came back is not available again", Available, "offer", does_nothing),
        Fault("one message more is taken than asked for", Available, "take", _greedy),
        Fault("one message fewer is taken than there is", Available, "take", _one_too_few),
        Fault("a sequence number is left out", putting, "enqueue", _gap),
        STAYS_KNOWN,
        Fault("open puts outlive their rollback", sessions, "_discard_open_puts", _keeps_puts),
        Fault("replies are forgotten at once", sessions, "remember_reply", does_nothing),
        Fault("a handing tells of one delivery alone", sessions, "tell_handing", _tells_of_one, 96),
        Fault("suspicion outlives a sign of life", sessions, "show_life", does_nothing),
        Fault("deadlines of sessions are 50 ms late", sessions, "set_deadline", _later),
        Fault("nothing is given to waiting consumers", delivery, "_give", does_nothing),
        Fault("what a consumer gives back stays with it", consumers, "give_back", does_nothing, 1),
        Fault(
            "what is removed by hand stays in flight",
            message_operations,
            "end_flight",
            does_nothing,
            8,
        ),
    ),
    drawn(informed_histories()),
)
# The journal is turned on and off and backed up (DB-17).
JOURNAL = Family(
    "journal",
    (
        Fault("the journal is never turned off", Journal, "switch", _stays_on),
        Fault("a backup of the journal is forgotten", Journal, "backed_up", does_nothing),
    ),
    drawn(informed_histories(weights=("put", "journal", "journal"))),
)
REJECTING = Family(
    "rejections",
    (
        Fault("what is rejected is delivered again", settling, "send_away_rejected", _offered, 1),
        Fault("what is rejected stays with its consumer", consumers, "give_back", does_nothing, 1),
        Fault("a rejection is no backout", consumers, "give_back", _forgetful_backout, 1),
        Fault("a delay that is asked for is none", settling, "back_out", _as_settings_say, 1),
    ),
    drawn(informed_histories(weights=MUCH_REJECTED)),
)
# Scripts show it: random histories seldom deliver what was rejected elsewhere.
REJECTING_SCRIPTS = Family(
    "rejecting in scripts",
    (Fault("what is rejected says that it came too often", redelivery, "transfer", _as_too_often),),
    played_in("rejecting"),
)
CLOCK = Family(
    "clock",
    (
        Fault("state time ahead goes on at full pace", clock, "TIME_AHEAD_RATE", _full_pace),
        Fault("leaps of ten minutes are believed", clock, "TIME_LEAP_US", _ten_times),
    ),
    drawn(clock_histories()),
)
# Scripts show it, because random histories seldom come to it (SES-39).
CONNECTIONS = Family(
    "connections",
    (
        Fault(
            "open puts outlive their temporary destination",
            temporaries,
            "_putting",
            _nobody,
        ),
    ),
    played_in("connections"),
)
UNIT_LIMITS = Family(
    "time limits of units of work",
    (
        Fault("a put does not end idleness", unit_limits, "_restart_idleness", _if_it_began),
        Fault("the longer one of two limits holds", unit_limits, "shorter", _longer),
        Fault("a unit of work outlives its limit", clock, "time_out_unit_of_work", does_nothing),
    ),
    played_in("unit_limits"),
)
