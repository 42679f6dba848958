"""Tests of messages handled by hand that scripts have no room for: bounds, questions, counts."""

import pytest

from ledgermq.core.queries import questions as query
from support.messages.selections import of_queue
from support.planted.planted_faults import expect_found_by, named
from support.planted.put_faults import HANDLING
from support.scripts.play import Player, play_lines


def asked(player: Player, *, limit: int = 100, to_origin: bool = False, **selection):
    """The answer to a question for a selection."""
    ask = {"kind": "SELECT_MESSAGES", "selection": {**of_queue("q"), **selection}}
    told = {**ask, "limit": limit, "to_origin": to_origin}
    return query.answer(player.state, told, "QM1", "worker")


@pytest.fixture(scope="module")
def deep():
    """A queue with 20,001 messages, of which the last one is red."""
    return play_lines(
        "open",
        "create r",
        "put q M*10000 -> enqueued 0..9999",
        "put q N*10000 -> enqueued 10000..19999",
        "put q Z{color=red} -> enqueued 20000..20000",
        with_model=False,
    )


def test_one_look_is_at_20_000_numbers_at_most(deep):
    """A selector that matches little costs no more than one that matches all (H28)."""
    first = asked(deep, selector="color = 'red'").document
    assert first == {
        "affected": 0,
        "skipped": 0,
        "more": True,
        "last_sequence": 19_999,
        "next_sequence": 20_001,
        "origins": [],
    }
    second = asked(deep, selector="color = 'red'", after_sequence=19_999).document
    assert (second["affected"], second["more"], second["last_sequence"]) == (1, False, 20_000)


@pytest.mark.parametrize("limit", [0, 10_000, 2_000_000_000])
def test_one_operation_touches_10_000_messages_at_most(deep, limit):
    """Whatever limit its writer gives."""
    told = query.answer(
        deep.state,
        {
            "kind": "SELECT_MESSAGES",
            "selection": {**of_queue("q"), "limit": limit},
            "limit": 0,
            "to_origin": False,
        },
        "QM1",
        "worker",
    )
    assert told.document["affected"] == 10_000
    assert (told.document["more"], told.document["last_sequence"]) == (True, 9_999)


def test_at_most_1_000_ranges_of_numbers_are_named():
    """A selection that names more is refused (selection-invalid)."""
    player = play_lines("open", "put q A -> enqueued 0..0")
    ranges = [{"first": one, "last": one} for one in range(0, 2_002, 2)]
    assert asked(player, sequences=ranges[:1_000]).document["affected"] == 1
    assert asked(player, sequences=ranges).reason == "selection-invalid"


def test_a_question_shows_as_many_messages_as_it_asked_for_and_counts_all():
    """The messages come in order of their numbers, at most 1 MiB of content, one at least."""
    player = play_lines("open", "put q A/1:1048576 B/9 C -> enqueued 0..2")
    for limit, shown in ((0, []), (-1, []), (1, [0]), (9, [0])):
        told = asked(player, limit=limit)
        assert told.document["affected"] == 3
        assert [one["sequence"] for one in told.messages] == shown
    assert [one["sequence"] for one in asked(player, after_sequence=0).messages] == [1, 2]


def test_a_question_without_selection_is_refused():
    """A writer that left it out is told so (selection-invalid)."""
    player = play_lines("open", "create q")
    told = query.answer(
        player.state, {"kind": "SELECT_MESSAGES", "selection": None}, "QM1", "worker"
    )
    assert told.reason == "selection-invalid"


def test_a_question_changes_nothing():
    """A dry run may be asked for at any time."""
    player = play_lines(
        "open", "put q A B -> enqueued 0..1", "create e", "move q e 0 -> administered 1"
    )
    before = player.state.position
    assert asked(player, source="queue:e", to_origin=True).document["affected"] == 1
    assert player.state.position == before
    assert len(player.state.queues["e"].messages) == 1


@pytest.mark.parametrize("planted", named(HANDLING))
def test_a_message_that_leaves_and_is_still_known_or_counted_is_noticed(planted):
    """The checks after every entry find a fault planted in the handling."""
    expect_found_by(HANDLING, planted)
