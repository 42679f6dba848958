"""Operations with small random numbers, mostly illegal: what the generators draw blindly."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ledgermq.protocol import operations as op
from ledgermq.protocol.administration import BackUpJournal, PositionsSkipped, VersionOffered
from ledgermq.protocol.operations import Operation
from support.scripts.verbs import group_id, identifier

START_US = 1_790_000_000_000_000
MODES = ("AUTO", "CLIENT", "INDIVIDUAL", "TRANSACTED", "TRANSACTED", "TRANSACTED")
QUEUES = ("q", "r", "s")


def sample_message(
    number: int,
    priority: int,
    size: int,
    color: str = "",
    timing: tuple[int, int, int] | None = None,
    redelivery_limit: int = -1,
) -> op.PutMessage:
    """One message of a Put, with the property color if one is given."""
    message: op.PutMessage = {
        "message_id": number.to_bytes(16, "big"),
        "priority": priority,
        "persistent": True,
        "content": b"x" * size,
    }
    if color or timing or redelivery_limit != -1:
        message["header"] = _header(color, timing, redelivery_limit)
    return message


def _header(
    color: str, timing: tuple[int, int, int] | None, redelivery_limit: int = -1
) -> op.Header:
    """A header with one property, and times from the send in ms."""
    time_to_live_ms, delivery_delay_ms, age_ms = timing or (0, 0, 0)
    return {
        "properties": {"color": color} if color else {},
        "correlation_id": None,
        "type": None,
        "time_to_live_ms": time_to_live_ms,
        "delivery_delay_ms": delivery_delay_ms,
        "age_ms": age_ms,
        "redelivery_limit": redelivery_limit,
    }


def grouped_message(number: int, group: op.Group) -> op.PutMessage:
    """One message with a place in a group."""
    message = sample_message(number, 4, 1, "red")
    message["header"]["group"] = group
    return message


TIMINGS = (None, None, None, (1_000, 0, 0), (0, 5_000, 0), (20_000, 10_000, 3_000), (50, 0, 9_000))
SELECTORS = ("", "", "color = 'red'", "color = 'blue'", "color <> 'red'", "JMSPriority > 4")
COLORS = ("", "", "red", "blue")
# Stands for the number that would follow in the session, as far as a writer without state knows.
FOLLOWING = -9
small = st.integers(-1, 4)
handles = st.sampled_from((0, 0, 0, 1, 1, 1, 2, 3, 12, -1))
ranges = st.lists(st.builds(lambda first, last: {"first": first, "last": last}, small, small))
names = st.sampled_from((*QUEUES, "", "a b", "n" * 129))
TEMPORARY = "temporary/" + identifier("a").hex() + "/"
destinations = names.map(lambda name: "queue:" + name) | st.sampled_from(
    ("q", "pigeon:q", "topic:t", "topic:t", "topic:u", "queue:" + TEMPORARY + "q", "topic:")
)
common: dict[str, Any] = {
    "session": handles,
    "session_sequence": st.sampled_from((FOLLOWING,) * 6 + (-1, 0, 1, 2, 3, 9)),
    "answered_through": st.integers(-1, 6),
    "handed_through": st.sampled_from((0, 0, 0, -1, 1, 2, 9)),
}
groups: st.SearchStrategy[op.Group] = st.fixed_dictionaries(
    {
        "group_id": st.sampled_from((group_id("G"), group_id("H"), b"", bytes(24), b"short")),
        "group_sequence": st.sampled_from((1, 1, 1, 2, 3, 0, 999_999_999, 10**9)),
        "offset": st.sampled_from((0, 0, 0, 5, -1, 2**53, 2**53 + 1)),
        "length": st.sampled_from((0, 0, 5, 10, -1, 2**53, 2**53 + 1)),
        **dict.fromkeys(("in_group", "last_in_group", "segment"), st.booleans()),
        **dict.fromkeys(("last_segment", "logical_order"), st.booleans()),
    }
)  # type: ignore[assignment]
get_options: st.SearchStrategy[op.GetOptions] = st.fixed_dictionaries(
    {
        **dict.fromkeys(("logical_order", "all_messages_available"), st.booleans()),
        **dict.fromkeys(("all_segments_available", "complete_message"), st.booleans()),
        "message_id": st.sampled_from((b"", b"", b"x", (1).to_bytes(16, "big"), bytes(17))),
        "correlation_id": st.sampled_from((None, None, "", "c")),
        "group_id": st.sampled_from((b"", b"", b"", group_id("G"), b"short")),
        "group_sequence": st.sampled_from((0, 0, 0, 1, 2, -1, 10**9)),
        "offset": st.sampled_from((-1, -1, -1, 0, 5, -2, 2**53 + 1)),
        "sequence": st.sampled_from((-1, -1, -1, 0, 2, -2)),
    }
)  # type: ignore[assignment]
opens = st.builds(
    op.Open,
    connection=st.sampled_from((identifier("a"), identifier("b"))),
    lane=st.sampled_from((0, 0, 0, 1, -1)),
    session_key=st.just(bytes(16)),
    acknowledge_mode=st.sampled_from((*MODES, "UNKNOWN")),
    suspect_timeout_ms=st.sampled_from((10_000, 10_000, 1_000, 45_000, 999, 45_001)),
    client=st.sampled_from(("", "", "", "c" * 1025)),
    client_id=st.sampled_from(("", "", "", "c", "a b")),
    takeover=st.sampled_from((b"", b"", b"token", bytes(1025))),
    redelivery_delay_ms=st.sampled_from((0, 0, 0, 1_000, -1)),
    unit_of_work_time_limit_ms=st.sampled_from((0, 0, 0, 1_000, 5_000, -1)),
    unit_of_work_idle_limit_ms=st.sampled_from((0, 0, 0, 50, 2_000, 2**53)),
)
DESTINATIONS = ("", "queue:q", "queue:r", "queue:s", "topic:t", "queue:nowhere", "q")
STEPS = tuple(
    [{"retries": retries, "delay_ms": delay_ms} for retries, delay_ms in steps]
    for steps in ((), ((1, 0),), ((1, 50), (3, 1_000)), ((2, 1), (2, 1)), ((-1, 1),), ((0, -1),))
)
actors = st.sampled_from(("a", "a", "a", "ä\n", "", "a" * 129))
FIFO_MODES = ("UNKNOWN", "CONCURRENT", "PROTECTED", "SERIALIZED")
redelivery: dict[str, st.SearchStrategy[Any]] = {
    "redelivery_delay_override_ms": st.none() | st.sampled_from((-2, -1, 0, 1_000)),
    "redelivery_limit": st.none() | st.sampled_from((-2, -1, 0, 1, 2**31 - 1)),
    "redelivery_delay_multiplier_percent": st.none() | st.sampled_from((99, 100, 10_000)),
    "redelivery_delay_max_ms": st.none() | st.sampled_from((-1, 0, 1)),
    "redelivery_steps": st.none() | st.sampled_from(STEPS),
    "error_destination": st.none() | st.sampled_from(DESTINATIONS),
}
settings = st.none() | st.fixed_dictionaries(
    {
        **redelivery,
        "time_to_live_override_ms": st.none() | st.sampled_from((-2, -1, 0, 1, 5_000)),
        "delivery_delay_override_ms": st.none() | st.sampled_from((-2, -1, 0, 1_000)),
        "expiry_destination": st.none() | st.sampled_from(DESTINATIONS),
        "puts_disabled": st.sampled_from((None, None, None, False, True)),
        "messages_max": st.none() | st.sampled_from((-1, 0, 1, 3, 2**53, 2**53 + 1)),
        "bytes_max": st.none() | st.sampled_from((-1, 0, 2, 2**53, 2**53 + 1)),
        "blocking_send_policy": st.none() | st.sampled_from(("FIFO", "PREEMPTIVE", "UNKNOWN")),
        "fifo_mode": st.none() | st.sampled_from(FIFO_MODES),
    }
)
# Mostly legal ones; the segments are small, because the messages are.
manager_settings: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "maximum_lifetime_ms": st.sampled_from((None, None, 0, 1_000, 20_000, 2_592_000_000)),
        "segment_bytes": st.sampled_from((None, 3, 5, 10, 50)),
        "segments_min": st.sampled_from((None, None, 1, 2, 5)),
        "segments_max": st.sampled_from((None, None, 0, 2, 3, 6)),
        "journaling": st.sampled_from((None, True, False)),
        "journal_lifetime_ms": st.sampled_from((None, None, 0, 1_000)),
    }
)
naive_operations: st.SearchStrategy[Operation] = st.one_of(
    opens,
    st.builds(
        op.OpenConsumer,
        **common,
        consumer=small,
        destination=destinations,
        selector=st.sampled_from((*SELECTORS, "color =")),
        no_local=st.booleans(),
        subscription=st.sampled_from(("", "", "s", "a b")),
        durable=st.booleans(),
        shared=st.booleans(),
        redelivery_delay_ms=st.sampled_from((-1, -1, 0, 1_000, -2)),
    ),
    st.builds(
        op.CreateTopic, **common, topic=names, message_bytes_max=small, unacknowledged_max=small
    ),
    st.builds(op.DeleteTopic, **common, topic=st.sampled_from("tu"), purge=st.booleans()),
    st.builds(op.CreateTemporary, **common, destination=destinations),
    st.builds(op.Unsubscribe, **common, subscription=st.sampled_from(("s", "x"))),
    st.builds(op.CloseConsumer, **common, consumer=small, unseen=ranges),
    st.builds(op.GiveBack, **common, consumer=small, unseen=ranges),
    st.builds(
        op.Put,
        **common,
        destination=destinations,
        messages=st.lists(
            st.builds(
                sample_message,
                st.integers(0, 99),
                st.integers(-1, 10),
                st.integers(0, 3),
                st.sampled_from(COLORS),
                st.sampled_from((*TIMINGS, (-1, 0, 0))),
                st.sampled_from((-1, -1, -1, 0, -2)),
            )
            | st.builds(grouped_message, st.integers(0, 99), groups),
            max_size=4,
        ),
        blocking_ms=st.sampled_from((0, 0, 1_000, 30_000, -1, 10**15)),
    ),
    st.builds(
        op.Get,
        **common,
        consumer=small,
        credit=st.sampled_from((-1, 0, 1, 3, 10**6, 10**9)),
        options=st.none() | get_options,
    ),
    st.builds(op.Acknowledge, **common, deliveries=ranges),
    st.builds(op.Commit, **common, deliveries=ranges, puts=small),
    st.builds(op.Rollback, **common, seen=ranges),
    st.builds(op.Recover, **common, seen=ranges),
    st.builds(op.Close, **common, seen=ranges),
    st.builds(op.Alive, **common, handing=small),
    st.builds(
        op.CreateQueue,
        **common,
        queue=names,
        message_bytes_max=small,
        unacknowledged_max=small,
        group_affinity=st.booleans(),
        settings=settings,
        inherits_redelivery=st.booleans(),
    ),
    st.builds(
        op.AlterQueue,
        **common,
        queue=names,
        gets_disabled=st.none() | st.booleans(),
        group_affinity=st.none() | st.booleans(),
        settings=settings,
        inherits_redelivery=st.none() | st.booleans(),
    ),
    st.builds(
        op.AlterTopic,
        **common,
        topic=names,
        settings=settings,
        unacknowledged_max=st.none() | small,
    ),
    st.builds(op.DeleteQueue, **common, queue=names, purge=st.booleans()),
    st.builds(
        op.AlterQueueManager,
        **common,
        automatic_creation=st.none() | st.booleans(),
        maximum_lifetime_ms=st.none() | st.sampled_from((-1, 0, 1, 20_000)),
        messages_max=st.none() | st.sampled_from((-1, 0, 2, 2**53 + 1)),
        unit_of_work_time_limit_ms=st.none() | st.sampled_from((-1, 0, 1, 3_000)),
        unit_of_work_idle_limit_ms=st.none() | st.sampled_from((-1, 0, 500, 10_000)),
        bytes_max=st.none() | st.sampled_from((-1, 0, 3, 2**53 + 1)),
        segment_bytes=st.none() | st.sampled_from((0, 1, 3, 9, 2**40 + 1)),
        segments_min=st.none() | st.sampled_from((0, 1, 2, 6, 100_000)),
        segments_max=st.none() | st.sampled_from((-1, 0, 1, 2, 7, 100_000)),
        journaling=st.none() | st.booleans(),
        journal_lifetime_ms=st.none() | st.sampled_from((-1, 0, 60_000)),
        redelivery=st.none() | st.fixed_dictionaries(redelivery),
    ),
    st.builds(
        op.Bind,
        **common,
        topics=st.sampled_from(("t", "t.*", "#", "*", "t*", "")),
        destination=destinations,
        selector=st.sampled_from(("", "color = 'red'", "color =")),
    ),
    st.builds(op.Unbind, **common, topics=st.sampled_from(("t", "#")), destination=destinations),
    st.builds(op.Upgrade, **common, version=st.integers(-1, 1)),
    st.builds(
        op.Correct,
        **common,
        queue=names,
        sequence=small,
        action=st.sampled_from(("UNKNOWN", "REMOVE", "RELEASE")),
        actor=st.just("a"),
        reason=st.just("r"),
    ),
    st.builds(
        op.RollbackTransaction, **common, target_session=handles, actor=actors, reason=st.just("r")
    ),
    st.builds(op.EndSession, **common, target_session=handles, actor=actors, reason=st.just("r")),
    st.builds(
        BackUpJournal,
        **common,
        actor=actors,
        reason=st.just("r"),
        through=small,
        kept_from=small,
        needed_from=small,
    ),
    st.builds(VersionOffered, worker=st.just("w"), version=st.sampled_from((-1, 0, 1, 5, 2**30))),
    st.builds(
        PositionsSkipped, first=small, last=small, actor=actors, reason=st.sampled_from(("", "r"))
    ),
    st.builds(op.Tick, worker=st.just("w")),
    st.builds(
        op.TimeAgreed, worker=st.just("w"), writer_time=st.sampled_from((0, START_US, 2**62))
    ),
    st.builds(op.Suspect, worker=st.just("w"), sessions=st.lists(handles, max_size=4)),
)
