"""Tests that each field of a state is compared: of a checkpoint, and of where the moves end."""

from copy import deepcopy

import pytest

from ledgermq.core.snapshot.state_records import blocks, root_of
from ledgermq.protocol import operations as op
from ledgermq.protocol.administration import MoveMessages
from ledgermq.wire.framing.checkpoint_chunks import encode_root
from ledgermq.wire.framing.codec import decode_record, encode_record
from ledgermq_spark.audit.states import compare_live, compare_messages
from ledgermq_spark.rebuild.checkpoints import BLOCK, ROOT, Checkpoint
from support.audits.engines import duck_engine
from support.audits.frames import stored_messages
from support.audits.testimonies import Logs
from support.brokers.log_writer import Script
from support.messages.selections import of_queue
from support.planted.group_planting import GROUP_PLANTS
from support.planted.planting import TOPIC_PLANTS, publication, selection
from support.stories import losses


@pytest.fixture(scope="module")
def state():
    """The state of a log with topics, subscriptions, and groups that are kept and bonded."""
    script = Script()
    for name, _, _ in TOPIC_PLANTS:
        (selection if name.startswith("queue") else publication)(script, name)
    for queue, before, _ in GROUP_PLANTS:
        before(script, queue)
    return script.state


def live_with(state, change):
    """What is found of a checkpoint whose root is the rebuilt one, but for a change."""
    rebuilt = encode_root(root_of(state))
    built = [encode_record(BLOCK, one) for one in blocks(state)]
    _, root = decode_record(rebuilt)
    change(root)
    live = Checkpoint(manifest={}, root=encode_record(ROOT, root), blocks=built)
    return compare_live(rebuilt, built, live, state.position)


def test_a_live_state_that_is_the_rebuilt_one_agrees(state):
    """Then nothing is found."""
    assert live_with(state, lambda root: None) == []


@pytest.mark.parametrize(("record", "field"), [("topics", "dropped"), ("subscriptions", "added")])
def test_one_field_of_the_live_topics_is_found(state, record, field):
    """A counter of a topic or subscription in the root of a checkpoint."""

    def change(root):
        root[record][0][field] += 1

    (found,) = live_with(state, change)
    assert (found.kind, found.field) == ("state mismatch", field)
    assert record in found.summary


@pytest.mark.parametrize(
    ("record", "field", "value"),
    [
        ("consumers", "holds_group", False),
        ("consumers", "place", []),
        ("consumers", "options", []),
        ("queues", "group_affinity", True),
        ("queues", "bonds", []),
    ],
)
def test_one_field_of_the_live_groups_is_found(state, record, field, value):
    """A place, the options, a kept group or a bond in the root of a checkpoint."""

    def change(root):
        entries = root["queues"]
        if record == "consumers":
            entries = [one for session in root["sessions"] for one in session["consumers"]]
        changed = next(one for one in entries if one[field] != value)
        assert changed[field] or field == "group_affinity"
        changed[field] = value

    found = live_with(state, change)
    assert [one.kind for one in found] == ["state mismatch"]
    assert field in found[0].summary


@pytest.mark.slow
def test_where_the_moves_end_is_what_stands():
    """A move that the fold left out, and a backout that counts in the state alone, are named."""
    script = losses.two_losses()
    session = script.session()
    session.send(op.CreateQueue, queue="s")
    session.put("r", "x")
    asked = {"target": "queue:s", "actor": "op", "reason": "test"}
    session.send(MoveMessages, selection=of_queue("r"), **asked)
    logs = Logs()
    end, _ = logs.fold("QM1", script.entries)
    facts, stood = logs.facts(duck_engine()), list(blocks(end))
    assert compare_messages(facts, stored_messages(stood), 9) == []
    wrong = {one["queue"]: one["messages"] for one in deepcopy(stood)}
    wrong["q"][1]["uncounted_backout_count"] -= 1
    moved = wrong["s"].pop()
    changed = [one | {"messages": wrong[one["queue"]]} for one in stood]
    found = compare_messages(facts, stored_messages(changed), 9)
    assert [(one.field, one.queue, one.expected, one.found) for one in found] == [
        ("uncounted_backout_count", "q", "1", "2"),
        ("presence", "s", "absent", "there"),
    ]
    assert {one.kind for one in found} == {"state mismatch"}
    assert found[1].message_id == moved["message_id"].hex()
