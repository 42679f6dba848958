"""Snapshots: what blocks hold, which are touched, and that restoring is exact (PROTOCOL.md §10)."""

from ledgermq.core.snapshot.state_records import (
    block_of,
    blocks,
    root_of,
    take_touched_blocks,
    taken_block,
    touch_all_blocks,
)
from ledgermq.core.state.storage import FIRST_SEGMENT
from ledgermq.processor.checkpoints.blocks import encode_block
from ledgermq.wire.framing.checkpoint_chunks import encode_block_record
from support.checks import checks
from support.scripts.play import play_lines
from support.scripts.verbs import identifier

# What a checkpoint tells of a message to which nothing happened and that asks for nothing.
PLAIN = {
    "persistent": True,
    "backout_count": 0,
    "header": [],
    "expires_at": -1,
    "deliver_at": -1,
    "uncounted_backout_count": -1,
    "in_unit_of_work": False,
    "origin": None,
    "redelivery_limit": -1,
    "delayed_until": -1,
    "segment": FIRST_SEGMENT,
    "body_position": -1,
    "body_index": -1,
}


def test_block_holds_1024_sequence_numbers():
    """Message 1023 is the last of block 0, 1024 the first of block 1; empty blocks are none."""
    state = play_lines("open", "put q M*2049 -> enqueued 0..2048").state
    found = list(blocks(state))
    assert [(one["block"], len(one["messages"])) for one in found] == [(0, 1024), (1, 1024), (2, 1)]
    assert found[1]["messages"][0]["sequence"] == 1024
    assert found == [block_of(state, 1, number) for number in range(3)]
    assert block_of(state, 1, 3) is None
    assert block_of(state, 9, 0) is None


def test_blocks_come_by_creation_of_their_queues():
    """The order of a manifest follows the positions at which queues were created."""
    state = play_lines(
        "open",
        "create b",
        "create a",
        "put a A -> enqueued 0..0",
        "put b B -> enqueued 0..0",
    ).state
    assert [(one["queue"], one["created_position"]) for one in blocks(state)] == [
        ("b", 1),
        ("a", 2),
    ]


def test_stored_message_has_all_that_delivery_needs():
    """A block's entry tells a message but for its content."""
    state = play_lines("open", "tick", "put q A B/7:300 +1s -> enqueued 0..1").state
    (block,) = blocks(state)
    assert block["messages"][1] == PLAIN | {
        "put_position": 2,
        "put_index": 1,
        "sequence": 1,
        "message_id": identifier("B"),
        "priority": 7,
        "size_bytes": 300,
        "enqueued_at": 1_790_000_001_000_000,
    }


def test_open_put_has_no_number_and_no_time_yet():
    """A root tells the uncommitted puts of a session, in put order."""
    state = play_lines("open TRANSACTED", "put q A/9:5").state
    (session,) = root_of(state)["sessions"]
    assert session["open_puts"] == [
        {
            "destination": "queue:q",
            "messages": [
                PLAIN
                | {
                    "put_position": 1,
                    "put_index": 0,
                    "sequence": -1,
                    "message_id": identifier("A"),
                    "priority": 9,
                    "size_bytes": 5,
                    "enqueued_at": -1,
                }
            ],
        }
    ]


def test_full_block_touches_no_other():
    """1,024 messages are one block, not two."""
    state = play_lines("open", "put q M*1024 -> enqueued 0..1023").state
    assert take_touched_blocks(state) == [(1, 0)]


def test_blocks_are_touched_by_numbering_consuming_and_backouts_only():
    """Delivering and returning unseen touch none: a checkpoint's cost follows change (D5)."""
    player = play_lines("open CLIENT", "put q M*1025 -> enqueued 0..1024", "consumer 1 q")
    state = player.state

    def touched_by(*lines: str):
        take_touched_blocks(state)
        player.go_on(*lines)
        return take_touched_blocks(state)

    assert take_touched_blocks(state) == [(1, 0), (1, 1)]
    assert take_touched_blocks(state) == []
    assert touched_by("get 1024 -> accepted; delivered M0..999@0; delivered M1000..1023@1000") == []
    assert touched_by("ack 5") == [(1, 0)]
    assert touched_by("recover -> returned 1023") == []
    assert touched_by("get 1 -> accepted; delivered M0@0", "recover 1025 -> returned 1") == [(1, 0)]
    assert touched_by("put q Z -> enqueued 1025..1025") == [(1, 1)]
    assert touched_by("correct q 1024 REMOVE") == [(1, 1)]
    assert touched_by("put r A -> enqueued 0..0", "put q Y -> enqueued 1026..1026") == [
        (1, 1),
        (10, 0),
    ]


def test_a_checkpoint_that_is_written_whole_takes_every_block_that_holds_messages():
    """Those of all queues, touched or not; what was consumed needs none (D5)."""
    player = play_lines(
        "open CLIENT",
        "put q M*1025 -> enqueued 0..1024",
        "put r A -> enqueued 0..0",
        "put s B -> enqueued 0..0",
        "consumer 1 s",
        "get 1 -> accepted; delivered B@0",
        "ack 1",
    )
    take_touched_blocks(player.state)
    touch_all_blocks(player.state)
    assert take_touched_blocks(player.state) == [(1, 0), (1, 1), (2, 0)]


def test_a_topic_message_touches_the_block_of_each_subscription_that_gets_it():
    """A checkpoint would go without it else; the position of a subscription is its consumer's."""
    player = play_lines("open", "consumer 1 topic:t", 'consumer 2 topic:t selector=color=="red"')
    take_touched_blocks(player.state)
    player.go_on("put topic:t A -> enqueued 0..0")
    assert take_touched_blocks(player.state) == [(1, 0)]


def test_a_backout_touches_the_block_of_its_message():
    """Message 1025 stands in block 1, and nothing else changed."""
    player = play_lines(
        "open CLIENT",
        "put q M*1026 -> enqueued 0..1025",
        "consumer 1 q",
        "get 1026 -> accepted; delivered M0..999@0; delivered M1000..1025@1000",
    )
    take_touched_blocks(player.state)
    player.go_on("recover 1026 -> returned 1026")
    assert take_touched_blocks(player.state) == [(1, 1)]


def test_a_message_that_is_written_again_touches_its_block():
    """The next checkpoint says where its body is now: else it would be read where it was (H24)."""
    player = play_lines("open", "put q M*2049 -> enqueued 0..2048")
    take_touched_blocks(player.state)
    player.go_on("relocate q#1025 -> administered 1")
    assert take_touched_blocks(player.state) == [(1, 1)]


def test_queues_and_connections_keep_their_order_of_creation():
    """A root lists queues and connections as they came, sessions by handle."""
    state = play_lines("B: open", "A: open", "A: create z", "A: create a", "C: open on=B").state
    root = root_of(state)
    assert [one["name"] for one in root["queues"]] == ["z", "a"]
    assert [one["connection"] for one in root["connections"]] == [identifier("B"), identifier("A")]
    assert [one["session"] for one in root["sessions"]] == [0, 1, 4]


def test_a_consumer_that_was_closed_is_in_no_group():
    """What it still holds may be settled or come back, and it gets nothing behind that."""
    lines = ("put q A{g=G.1} B{g=G.2} C{g=G.3} -> enqueued 0..2", "consumer 1 q")
    lines += ("get 3 logical -> accepted; delivered A@0 B@1 C@2", "ack 1")
    for more, places in (((), 1), (("close-consumer 1", "reject 1 2"), 0)):
        root = root_of(play_lines("open CLIENT", *lines, *more).state)
        ((consumer,),) = [one["consumers"] for one in root["sessions"]]
        assert (len(consumer["place"]), len(consumer["settled_place"])) == (places, places)


def test_digest_tells_states_apart():
    """Any difference of state is a difference of digest."""
    common = (
        "open",
        "put q A B -> enqueued 0..1",
        "consumer 1 q",
        "get 1 -> accepted; delivered A@0",
    )
    variants = [
        common,
        (*common, "ack 1"),
        (*common, "recover -> returned 1"),
        (*common, "recover 1 -> returned 1"),
        (*common, "alter q gets_disabled=yes"),
    ]
    assert len({checks.digest(play_lines(*lines).state) for lines in variants}) == len(variants)


def test_a_taken_block_stays_as_it_was_when_the_state_goes_on():
    """Consumed, backed out and put messages change nothing of what was taken before (D5)."""
    player = play_lines(
        "open CLIENT",
        "put q M*1025 -> enqueued 0..1024",
        "consumer 1 q",
        "get 3 -> accepted; delivered M0..2@0",
        "recover 2 -> returned 3",
    )
    before = [encode_block_record(one) for one in blocks(player.state)]
    taken = [taken_block(player.state, 1, number) for number in range(2)]
    lines = (
        "get 5 -> accepted; delivered M0@0 M1@1+1 M2@2 M3@3 M4@4",
        "ack 5..5",
        "recover 8 -> returned 4",
    )
    player.go_on(*lines)
    assert [encode_block(one) for one in taken] == before
    assert [encode_block_record(one) for one in blocks(player.state)] != before
