"""The redelivery string of Java CAPS (DB-21)."""

import pytest

import ledgermq
from ledgermq.client.admin.queue_settings import settings_given
from ledgermq.redelivery import parse_redelivery, parse_steps

STEPS = [{"retries": 5, "delay_ms": 1_000}, {"retries": 10, "delay_ms": 5_000}]


def test_the_example_of_the_reference_is_two_steps_a_limit_and_an_error_destination():
    """After 5 failed retries a second, after 10 five, after 50 the message goes away (DB-21)."""
    assert parse_redelivery("5:1000; 10:5000; 50:move(queue:mydlq)") == {
        "redelivery_delay_override_ms": 0,
        "redelivery_limit": 50,
        "redelivery_delay_multiplier_percent": 100,
        "redelivery_delay_max_ms": 0,
        "redelivery_steps": STEPS,
        "error_destination": "queue:mydlq",
    }


@pytest.mark.parametrize(
    ("text", "own", "target"),
    [
        ("3:move(queue:dead)", "topic:t", "queue:dead"),
        ("3:move(topic:dead)", "queue:q", "topic:dead"),
        ("3:move(same:dead)", "queue:q", "queue:dead"),
        ("3:move(same:dead)", "topic:t", "topic:dead"),
        ("3:move(queue:dlq$error)", "queue:Queue1", "queue:dlqQueue1error"),
        ("3:move(same:$/$)", "topic:t", "topic:t/t"),
        (" 3 : move( queue : dead ) ; ", "queue:q", "queue:dead"),
    ],
)
def test_a_move_names_its_destination_by_kind_and_own_name(text, own, target):
    """`same` is of the kind of the message's own destination, `$` that one's name (DB-21)."""
    told = parse_redelivery(text, own)
    assert (told["redelivery_limit"], told["error_destination"]) == (3, target)


def test_delays_alone_have_no_limit_and_delete_has_no_destination():
    """Without an end a message is redelivered for ever; deleted, it is dropped (DB-21)."""
    told = parse_redelivery("5:1000; 10:5000")
    assert (told["redelivery_steps"], told["redelivery_limit"]) == (STEPS, -1)
    told = parse_redelivery("0:50; 2:delete")
    assert (told["redelivery_limit"], told["error_destination"]) == (2, "")


def test_an_empty_string_takes_all_of_it_away():
    """What a string set before has its defaults again."""
    told = parse_redelivery(" ")
    assert (told["redelivery_delay_override_ms"], told["redelivery_limit"]) == (-1, -1)
    assert (told["redelivery_steps"], told["error_destination"]) == ([], "")


@pytest.mark.parametrize(
    ("text", "entry", "reason"),
    [
        ("5", "'5'", "is not retries:delay"),
        ("5:1000; ten:5000", "'ten:5000'", "is not retries:delay"),
        ("5:1000;; 6:1", "''", "is not retries:delay"),
        ("5:-1", "'5:-1'", "is not retries:delay"),
        ("5:1.5", "'5:1.5'", "is not retries:delay"),
        ("5:5001", "'5:5001'", "at most 5000 ms"),
        ("5:1; 5:2", "'5:2'", "above those of the entry before"),
        ("5:move(queue:d); 9:1000", "'5:move(queue:d)'", "must be the last"),
        ("5:delete; 9:delete", "'5:delete'", "must be the last"),
        ("5:1000; 4:move(queue:d)", "'4:move(queue:d)'", "above those of '5:1000'"),
        ("5:move(d)", "'5:move(d)'", "it is move(queue:NAME)"),
        ("5:move(queue:a b)", "'5:move(queue:a b)'", "it is move(queue:NAME)"),
        ("5:move(queue:é)", "'5:move(queue:é)'", "is no name"),
        ("5:move(same:d)", "'5:move(same:d)'", "none is given"),
        ("5:move(queue:$)", "'5:move(queue:$)'", "none is given"),
        ("2147483648:1", "'2147483648:1'", "retries are at most"),
    ],
)
def test_what_is_wrong_is_told_with_its_entry(text, entry, reason):
    """A reader of the error finds the entry in the string (DB-21)."""
    with pytest.raises(ledgermq.IllegalStateError) as raised:
        parse_redelivery(text)
    assert entry in str(raised.value)
    assert reason in str(raised.value)


def test_steps_alone_may_be_longer_than_the_reference_allows():
    """As a setting of their own they are bound by the protocol only."""
    assert parse_steps("1:60000") == [{"retries": 1, "delay_ms": 60_000}]
    told = settings_given(redelivery_steps="1:60000; 2:0")
    assert told["settings"]["redelivery_steps"][1] == {"retries": 2, "delay_ms": 0}
    pairs = settings_given(redelivery_steps=[(1, 60_000), (2, 0)])
    assert pairs == told
    assert settings_given(redelivery_steps="")["settings"]["redelivery_steps"] == []
    with pytest.raises(ledgermq.ArgumentTypeError, match="redelivery_steps"):
        settings_given(redelivery_steps=5)
    for wrong in ([(1,)], [(1, "2")]):
        with pytest.raises(ledgermq.IllegalStateError, match="redelivery"):
            settings_given(redelivery_steps=wrong)


def test_steps_are_read_by_what_their_numbers_are_called():
    """As a status tells them, in whatever order, so that they can be given again."""
    told = settings_given(redelivery_steps=[{"delay_ms": 60_000, "retries": 1}])
    assert told["settings"]["redelivery_steps"] == [{"retries": 1, "delay_ms": 60_000}]


@pytest.mark.parametrize("wrong", [(5, 1000), [None], [{"retries": 1}], [{"after": 1, "for": 2}]])
def test_a_step_that_is_no_pair_is_refused_with_what_it_must_be(wrong):
    """Also one pair that was given in the place of a list of pairs."""
    with pytest.raises(ledgermq.IllegalStateError, match=r"must be \(retries, delay in ms\)"):
        settings_given(redelivery_steps=wrong)


def test_a_string_stands_in_the_place_of_the_settings_that_it_says():
    """It goes with others, not with those."""
    told = settings_given("queue:q", redelivery="3:move(queue:$.dead)", expiry_destination="")[
        "settings"
    ]
    assert (told["error_destination"], told["expiry_destination"]) == ("queue:q.dead", "")
    assert settings_given(redelivery=None) == {}
    for other in ({"redelivery_limit": 3}, {"redelivery_delay_multiplier": 1.5}):
        with pytest.raises(ledgermq.IllegalStateError, match="redelivery stands for"):
            settings_given("queue:q", redelivery="1:1", **other)
