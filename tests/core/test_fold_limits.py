"""Limits that take many lines or long names to reach, and what the fold says to programmers."""

import pytest

from ledgermq.core.apply import apply, new_state
from ledgermq.core.queries.destination_status import destination_status
from ledgermq.core.quoting import cut, quoted, shown_name
from ledgermq.protocol import operations
from ledgermq.protocol.get_options import Options
from ledgermq.protocol.operations import Tick
from ledgermq.protocol.outcomes import Accepted, Committed, Refused
from ledgermq.protocol.reasons import Reason
from ledgermq.wire.framing.codec import encode_chunk
from support.generators.naive_operations import sample_message
from support.scripts.play import Player, play_lines
from support.scripts.protocol_pages import PAGES
from support.scripts.script import read_scripts

PROTOCOL = "".join(path.read_text(encoding="utf-8") for path in PAGES)


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ("unit=2s idle=3s", "its time limit: it was open for 2000 ms"),
        ("unit=3s idle=2s", "its idle limit: nothing was put or got in it for 2000 ms"),
        ("unit=2s idle=2s", "its time limit: it was open for 2000 ms"),
    ],
)
def test_a_unit_of_work_that_took_too_long_says_which_limit_ended_it(limits, told):
    """Of two that end at once the one that nothing could have put off."""
    ended = ("put q X", "tick +2s -> returned 0 discarded=1")
    state = play_lines(f"open TRANSACTED {limits}", *ended).state
    assert state.sessions[0].unit_of_work_ended_by == told


def test_session_window_is_full_at_256_kept_replies_and_consumes_no_number():
    """Reply 257 is refused, session-window-full, until the writer takes answers (H15)."""
    play_lines(
        "open",
        *["alive"] * 255,
        "alive",
        "session replies=256 last_sequence=256",
        "put q A -> refused session-window-full",
        "alive n=258 -> refused session-sequence-gap expected=257",
        "close -> refused session-window-full",
        "again n=3",
        "session replies=256 last_sequence=256",
        "status q none",
        "put q A answered=1 -> enqueued 0..0",
        "session replies=256 last_sequence=257",
        "again n=257 -> enqueued 0..0",
        "alive -> refused session-window-full",
        "alive answered=257",
        "session replies=1",
    )


def test_what_waits_counts_in_the_session_window():
    """255 kept replies and a blocked put are 256: session-window-full (H15, H18)."""
    play_lines(
        "open",
        "create q messages_max=1",
        "put q A -> enqueued 0..0",
        "put q B block=9s -> nothing",
        *["alive"] * 253,
        "alive -> refused session-window-full",
        "again n=3 -> nothing",
        "alive answered=2",
        "session replies=254 last_sequence=257",
    )


def test_session_has_at_most_64_blocked_puts():
    """The next one of the session is refused at once, that of another is not: quota-exceeded
    (H18).
    """
    play_lines(
        "open",
        "create q messages_max=1",
        "put q A -> enqueued 0..0",
        *["put q B block=9s -> nothing"] * 64,
        "put r C -> enqueued 0..0",
        "put q D block=9s -> refused quota-exceeded",
        "B: open",
        "B: put q E block=9s -> nothing",
        "blocked q puts=65",
    )


def test_queue_name_has_at_most_128_characters():
    """128 characters name a queue, 129 do not: name-invalid, destination-invalid."""
    play_lines(
        "open",
        f"create {'n' * 129} -> refused name-invalid",
        f"put {'n' * 129} A -> refused destination-invalid",
        f"consumer 1 {'n' * 129} -> refused destination-invalid",
        f"create {'n' * 128}",
        f"put {'m' * 128} A -> enqueued 0..0",
        "manager queues=2",
    )


def test_queue_names_are_plain_letters():
    """Letters beyond ASCII, spaces and line ends name no queue: name-invalid."""
    play_lines(
        "open",
        "create Grüße -> refused name-invalid",
        "create ① -> refused name-invalid",
        "put ñ A -> refused destination-invalid",
        "create grusse",
    )


def test_apply_takes_the_next_position_only():
    """A position out of turn is the caller's fault and raises."""
    state = new_state()
    apply(state, Tick(worker="w"), 0, 0)
    for position in (0, 2, -1):
        with pytest.raises(AssertionError, match="after 0"):
            apply(state, Tick(worker="w"), position, 0)
    assert apply(state, Tick(worker="w"), 1, 0) == []


def test_time_may_start_at_zero():
    """The first entry sets the time, also to 1970; the next must not leap from there (H6)."""
    state = new_state()
    assert (state.position, state.time, state.time_stood_still) == (-1, -1, False)
    apply(state, Tick(worker="w"), 0, 0)
    apply(state, Tick(worker="w"), 1, 60_000_001)
    assert (state.time, state.time_stood_still) == (0, True)
    state = new_state()
    apply(state, Tick(worker="w"), 0, 10**15)
    assert (state.time, state.time_stood_still) == (10**15, False)


def test_enqueue_time_may_be_zero():
    """A queue whose only message was consumed in 1970 has a time, not a blank (SEQ-19)."""
    script = read_scripts("open\nput q A -> enqueued 0..0\ncorrect q 0 REMOVE")[0]
    player = Player()
    player.clock_us = 0
    for line in script.lines:
        player.line(line)
    status = destination_status(player.state, "queue:q")
    assert status is not None
    assert (status["first_enqueued_at"], status["last_enqueued_at"]) == (0, 0)


def test_operations_ask_for_nothing_special_unless_told():
    """What a writer leaves out has the default of the schema."""
    common = {"session": 0, "session_sequence": 1, "answered_through": 0}
    opened = operations.Open(
        connection=bytes(16),
        lane=0,
        session_key=bytes(16),
        acknowledge_mode="AUTO",
        suspect_timeout_ms=1_000,
    )
    assert opened.client == ""
    created = operations.CreateQueue(**common, queue="q")
    assert (created.description, created.message_bytes_max) == ("", 0)
    altered = operations.AlterQueue(**common, queue="q")
    assert (altered.description, altered.message_bytes_max, altered.gets_disabled) == (None,) * 3
    assert operations.DeleteQueue(**common, queue="q").purge is False
    assert operations.AlterQueueManager(**common).automatic_creation is None
    refused = Refused(position=0, index=0, session=0, session_sequence=1, reason="", detail="")
    assert refused.expected_sequence == 0


def test_apply_stops_at_a_version_that_it_does_not_know():
    """After an Upgrade to an unknown version no entry is folded (H3)."""
    state = play_lines("open", "offer 2", "upgrade 2").state
    with pytest.raises(AssertionError, match="unknown version"):
        apply(state, Tick(worker="w"), 3, 0)


def test_a_retry_costs_the_window_nothing():
    """Answering again keeps no further reply (D7)."""
    player = play_lines("open", "alive", *["again"] * 300, "session replies=1")
    assert player.state.position == 301


@pytest.mark.parametrize("reason", list(Reason))
def test_reason_code_stands_in_the_protocol(reason):
    """A code is for programs: it is its constant's name, and PROTOCOL.md tells what it means."""
    code = reason.value
    assert code == reason.name.lower().replace("_", "-")
    assert f"`{code}`" in PROTOCOL


def open_of(client: str = "", takeover: bytes = b"") -> operations.Open:
    """An Open that says a lot of its client."""
    return operations.Open(
        connection=bytes(16),
        lane=0,
        session_key=bytes(16),
        acknowledge_mode="TRANSACTED",
        suspect_timeout_ms=10_000,
        client=client,
        client_id="c",
        takeover=takeover,
    )


@pytest.mark.parametrize("field", ["client", "takeover"])
def test_what_an_open_says_of_its_client_is_at_most_1024_long(field):
    """1,024 characters or bytes are taken, one more is refused, setting-invalid (§3, H27)."""
    for length, kind in ((1024, "Opened"), (1025, "Refused")):
        text = "x" * length
        value = text if field == "client" else text.encode()
        (found,) = Player().enter(open_of(**{field: value}))
        assert type(found.outcome).__name__ == kind
        assert getattr(found.outcome, "reason", "setting-invalid") == "setting-invalid"


@pytest.mark.parametrize("wrong", ["message_id", "correlation_id"])
def test_what_a_get_matches_is_no_longer_than_a_message_can_have_it(wrong):
    """A message id of 17 bytes, a correlation id of over 64 KiB: options-invalid (§3)."""
    lengths = {"message_id": b"x" * 17, "correlation_id": "x" * 65_537}
    player = Player()
    player.enter(open_of())
    common = {"session": 0, "answered_through": 0}
    player.enter(
        operations.OpenConsumer(**common, session_sequence=1, consumer=1, destination="queue:q")
    )
    for number, length in ((2, lengths[wrong]), (3, lengths[wrong][1:])):
        options = Options()._replace(**{wrong: length}).record()
        (found,) = player.enter(
            operations.Get(**common, session_sequence=number, consumer=1, credit=1, options=options)
        )
        kind = "Refused" if number == 2 else "Accepted"
        assert type(found.outcome).__name__ == kind
        assert getattr(found.outcome, "reason", "options-invalid") == "options-invalid"


def test_a_unit_of_work_puts_to_at_most_10000_destinations():
    """The Put to one more is refused, transaction-too-large; what is there can be committed, to
    all its destinations, and the outcome fits into a record (decision 8, DB-09).
    """
    state = new_state()

    def enter(kind, **fields):
        common = {"session": 0, "session_sequence": state.position + 1}
        entry = kind(**common, answered_through=state.position, **fields)
        (found,) = apply(state, entry, state.position + 1, 0)
        return found.outcome

    apply(state, open_of(), 0, 0)
    for number in range(10_000):
        enter(
            operations.Put, destination=f"queue:{number:0128}", messages=[sample_message(1, 4, 1)]
        )
    for place, kind in (("queue:one-more", Refused), (f"queue:{0:0128}", Accepted)):
        found = enter(operations.Put, destination=place, messages=[sample_message(1, 4, 1)])
        assert isinstance(found, kind)
        assert getattr(found, "reason", "transaction-too-large") == "transaction-too-large"
    found = enter(operations.Commit, deliveries=[], puts=10_001)
    assert isinstance(found, Committed)
    assert len(found.enqueued) == 10_000
    assert len(encode_chunk(-1, -2, [found])) < 2 * 1024 * 1024


def test_a_refusal_quotes_a_text_in_ascii_and_cuts_it():
    """160 characters of what somebody wrote are shown, with escapes; then it is said how long it
    was (§7), and no refusal is longer than 4,096.
    """
    assert quoted("a b") == "'a b'"
    assert quoted("x" * 160) == repr("x" * 160)
    assert quoted("x" * 161) == "'" + "x" * 159 + "... (161 characters)"
    assert quoted("\x01" * 41) == "'" + r"\x01" * 39 + r"\x0" + "... (41 characters)"
    assert quoted("ü" * 40) == "'" + r"\xfc" * 40 + "'"
    assert cut("x" * 4_096) == "x" * 4_096
    assert cut("x" * 4_097) == "x" * 4_096 + "... (4097 characters)"
    assert shown_name("q/a.b") == "q/a.b"
    assert shown_name("ü") == r"'\xfc'"
    state = new_state()
    unreadable = operations.Unreadable(reason=Reason.RECORD_UNREADABLE.value, detail="x" * 5_000)
    (found,) = apply(state, unreadable, 0, 0)
    assert isinstance(found.outcome, Refused)
    assert found.outcome.detail == "x" * 4_096 + "... (5000 characters)"


def test_an_unknown_name_that_is_none_is_shown_in_ascii():
    """AlterQueue, DeleteQueue, AlterTopic and DeleteTopic quote what they do not know (§7)."""
    player = Player()
    player.enter(open_of())
    kinds = (operations.AlterQueue, operations.DeleteQueue)
    kinds += (operations.AlterTopic, operations.DeleteTopic)
    for number, kind in enumerate(kinds, 1):
        name = {"queue" if "Queue" in kind.__name__ else "topic": "ü" * 3_000}
        entry = kind(session=0, session_sequence=number, answered_through=0, **name)
        (found,) = player.enter(entry)
        assert isinstance(found.outcome, Refused)
        assert found.outcome.detail.isascii()
        assert len(found.outcome.detail) < 300
