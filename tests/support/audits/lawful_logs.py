"""Logs that no law finds anything in: stories, and random logs of every kind of operation."""

from __future__ import annotations

import random
from collections.abc import Iterator

from ledgermq.protocol.administration import MoveMessages, PurgeQueue
from support.brokers.log_writer import Script
from support.generators.mixed_histories import mixed_history
from support.generators.topic_generators import BindingWriter, UnroutedWriter
from support.planted.group_planting import clashes
from support.planted.trial import log_of
from support.random_logs.random_doubts import RandomDoubts, SegmentDoubts
from support.random_logs.random_endings import RandomEndings
from support.random_logs.random_ids import RandomIds
from support.random_logs.random_lifetimes import RandomLifetimes
from support.random_logs.random_log import RandomLog
from support.random_logs.random_sources import RandomSources
from support.stories import (
    endings,
    grouping,
    losses,
    moving,
    ordering,
    storing,
    topics,
    unusual_numbers,
    waiting,
)
from support.stories.written_again import Relocated

# Seed, steps, flavours.
RANDOM = (
    (0, 120, ()),
    (1, 120, ("topics",)),
    (2, 120, ("ends",)),
    (3, 120, ("groups",)),
    (4, 120, ("moves",)),
    (5, 120, ("redelivery",)),
    (6, 120, ("quotas",)),
    (7, 120, ("clock",)),
    (8, 120, ("topics", "ends", "moves")),
    (9, 120, ("topics", "groups", "redelivery", "quotas")),
    (10, 120, ("unit_limits",)),
    (11, 120, ("unit_limits", "topics", "groups", "quotas", "redelivery")),
    (27, 400, ("topics",)),
    (1, 500, ("groups",)),
    (11, 400, ("topics", "ends")),
    (2, 140, ("topics", "ends", "moves")),
    (23, 200, ("quotas", "topics", "ends")),
    (1, 160, ("redelivery",)),
    (2, 160, ("redelivery", "ends", "topics")),
    (3, 160, ("redelivery", "ends", "topics", "moves")),
    (37, 160, ("redelivery", "ordered", "ends", "topics", "moves")),
    # Messages come to the subscription of a topic and are delivered from there at once.
    (17, 160, ("redelivery", "ordered", "moves")),
    (5, 300, ("unit_limits", "quotas", "ends", "clock")),
)
# So many histories that mix all generators; `test_mixed` has more.
MIXED = 4
# So many of each kind of histories of topics.
TOPICS = 3
FIFO_MODES = ("PROTECTED", "SERIALIZED", "CONCURRENT", "PROTECTED")
DELAYS = {"delays_ms": (50, 150, 400), "segmented": True}
# Seed, the second destination, what else there is.
SINGLE = {"single_active": True}
PRIORITIES = {"priorities": (1, 0, 7, -1)}
FIFO = (
    (6, "topic:t", DELAYS),
    (3, "topic:t", {}),
    (3, "queue:b", {}),
    (2, "topic:t", SINGLE),
    (4, "queue:b", SINGLE | DELAYS),
    (7, "topic:t", PRIORITIES),
    (8, "queue:b", SINGLE | PRIORITIES),
)


def random_logs() -> Iterator[tuple[str, Script]]:
    """The name and script of each random log."""
    for seed, steps, parts in RANDOM:
        script = Script(random=random.Random(seed))
        RandomLog(script, **dict.fromkeys(parts, True)).grow(steps)
        yield f"random {seed} {' '.join(parts)}", script
    for seed, place, more in FIFO:
        script = Script(random=random.Random(seed))
        log = RandomEndings(
            script,
            fifo_modes=FIFO_MODES,
            places=("queue:a", place),
            redelivery_ms=(0, 300),
            **more,
        )
        what = "active" if "single_active" in more else "modes"
        what += " priorities" if "priorities" in more else ""
        yield f"random {seed} {what} {place}", log.grow(170)
    for seed in range(MIXED):
        yield f"mixed {seed}", Script(entries=log_of(mixed_history(seed)))
    for seed in range(TOPICS):
        for name, kind in (("unrouted", UnroutedWriter), ("bindings", BindingWriter)):
            history = mixed_history(seed, kinds=[kind])
            yield f"{name} {seed}", Script(entries=log_of(history))
    yield "random lifetimes", RandomLifetimes(Script(random=random.Random(9))).grow(260)
    yield "random sources", RandomSources(Script(random=random.Random(5))).grow(200)
    yield "random ids", RandomIds(Script(random=random.Random(6))).grow(200)
    yield "random doubts", RandomDoubts(Script(random=random.Random(4))).grow(120)
    yield "random segments in doubt", SegmentDoubts(Script(random=random.Random(22))).grow(240)


def lawful_logs() -> dict[str, Script]:
    """Every one of them by its name."""
    found = dict(random_logs())
    found["endings"] = endings.told()[0]
    found["wandering"] = moving.wandering()[0]
    found["copied again"] = moving.copied_again()
    found["copied to a topic"] = moving.copied_to_a_topic()[0]
    found["copied and sent back"] = moving.copied_to_a_topic_that_nobody_wants()
    found["copied before"] = moving.copied_before_it_went_to_a_topic()[0]
    found["sent back"] = moving.parked_and_sent_back()[0]
    found["two losses"] = losses.two_losses()
    found["segments in doubt"] = losses.inside_a_message_in_doubt()
    found["a commit written again"] = losses.written_again()
    found["handed over and settled"] = losses.handed_over_and_settled()
    found["not released"] = losses.corrected_before_it_is_delivered()
    found["fewer segments"] = storing.fewer_than_there_are()
    found["more segments"] = storing.more_as_a_put_is_let_in()
    found["ended in flight"] = topics.ended_in_flight()
    found["made anew"] = topics.made_anew()
    found["wanted nowhere in two ways"] = topics.wanted_nowhere_in_two_ways()
    found["bound and sent back"] = topics.bound_and_sent_back()
    found["ended with a connection"] = topics.ended_with_a_connection()[0]
    found["held up"] = waiting.held_up()[0]
    found["let in as a put begins"] = waiting.let_in_as_a_put_begins()
    found["let in as its unit is ended"] = waiting.let_in_as_its_unit_is_ended()
    found["over before there was a limit"] = waiting.over_before_there_was_a_limit()
    found["committed as it is repeated"] = waiting.committed_as_it_is_repeated()
    found["out of turn"] = waiting.out_of_turn()
    found["vanished before the next"] = waiting.vanished_before_the_next()
    found["put while time stood"] = waiting.put_while_time_stood()[0]
    found["written again"] = Relocated().script
    found["groups"] = grouping.complete_and_not()
    found["parked"] = ordering.parked()
    found["purged as a delay ends"] = ordering.handled_as_a_delay_ends(PurgeQueue)
    found["moved as a delay ends"] = ordering.handled_as_a_delay_ends(
        MoveMessages, target="queue:dead"
    )
    found["first one expires"] = ordering.first_one_expires()
    found["unusual numbers"] = unusual_numbers.told()
    found["farthest numbers"] = unusual_numbers.farthest()
    found["group clashes"] = Script()
    clashes(found["group clashes"])
    for kept, grouped in ((True, True), (True, False), (False, True)):
        found[f"delayed {kept} {grouped}"] = ordering.delayed(kept=kept, grouped=grouped)
    return found
