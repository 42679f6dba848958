"""Settings on the command line: an option for each, in memory."""

import click
import pytest

from ledgermq.cli.options.setting_options import Duration, duration_text
from ledgermq.cli.printing.exits import OK, REFUSED, USAGE


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        *(("0", 0), ("3", 3_000), ("1.5s", 1_500), ("500ms", 500), ("10m", 600_000)),
        *(("12h", 43_200_000), ("7d", 604_800_000), ("none", -1)),
    ],
)
def test_durations_have_units(text, milliseconds):
    """Without one they are seconds, as --timeout is."""
    assert Duration(-1).convert(text, None, None) == milliseconds


@pytest.mark.parametrize("text", ["0.1ms", "0.0001", "0.00000001h"])
def test_a_duration_below_a_millisecond_is_one_and_not_none(text):
    """0 would mean that a message lives for ever; a program's `time_to_live` is rounded so too."""
    assert Duration().convert(text, None, None) == 1


@pytest.mark.parametrize("text", ["", "soon", "-1", "3 weeks", "1e3"])
def test_what_is_no_duration_is_wrong_use(text):
    """The message says what one looks like."""
    with pytest.raises(click.BadParameter, match="500ms, 30s"):
        Duration(0).convert(text, None, None)
    with pytest.raises(click.BadParameter):
        Duration().convert("none", None, None)


def test_durations_are_shown_as_they_are_given():
    """In the largest unit that keeps them whole."""
    shown = [duration_text(one) for one in (0, 500, 1_500, 90_000, 3_600_000, 2_592_000_000)]
    assert shown == ["0ms", "500ms", "1500ms", "90s", "1h", "30d"]


def test_queue_is_created_with_settings_and_altered(memory):
    """`show` has each on a line of its own, `none` where it is not set."""
    assert memory("queue", "create", "old").code == OK
    assert (
        memory(
            *("queue", "create", "q", "--expiry-destination", "queue:old"),
            *("--time-to-live-override", "90s"),
        ).code
        == OK
    )
    lines = memory("queue", "show", "q").lines
    assert "expiry destination\tqueue:old" in lines
    assert "time to live override\t90s" in lines
    assert "delivery delay override\tnone" in lines
    altered = ("queue", "alter", "q", "--expiry-destination", "none", "--delivery-delay-override")
    assert memory(*altered, "5").code == OK
    settings = memory("queue", "show", "q", "--json").document["settings"]
    assert settings["expiry_destination"] == ""
    assert settings["delivery_delay_override_ms"] == 5_000
    assert settings["time_to_live_override_ms"] == 90_000


def test_creating_a_queue_creates_no_destination_that_it_names(memory):
    """It is refused, and nothing is there."""
    answer = memory("queue", "create", "q", "--expiry-destination", "queue:old")
    assert answer.code == REFUSED
    assert "destination-unknown" in answer.err
    assert memory("queue", "list", "--json").document == []


def test_altering_nothing_names_the_options(memory):
    """Wrong use says what could have been given."""
    for command in (("queue", "alter", "q"), ("topic", "alter", "t")):
        answer = memory(*command)
        assert answer.code == USAGE
        assert "--expiry-destination" in answer.err
    assert memory("manager", "alter").code == USAGE


def test_topic_is_created_with_settings_and_altered(memory):
    """`topic show` tells what `topic stat` tells."""
    assert memory("topic", "create", "late").code == OK
    assert memory("topic", "create", "t", "--delivery-delay-override", "1h").code == OK
    assert memory("topic", "alter", "topic:t", "--expiry-destination", "topic:late").code == OK
    shown = memory("topic", "show", "t")
    assert "expiry destination\ttopic:late" in shown.lines
    assert "delivery delay override\t1h" in shown.lines
    told = memory("topic", "stat", "t").lines
    assert [line for line in told if not line.startswith("position")] == [
        line for line in shown.lines if not line.startswith("position")
    ]


def test_topic_stat_says_that_it_is_topic_show(memory):
    """The help names one for what it does, and the other as another name of it."""
    rows = [line.split(maxsplit=1) for line in memory("topic", "--help").lines]
    texts = {row[0]: row[1] for row in rows if len(row) == 2}
    assert texts["show"].startswith("Show everything about topic NAME")
    assert texts["stat"] == "The same as `topic show`."


def test_db_18_manager_shows_and_alters_the_maximum_lifetime(memory):
    """Thirty days unless told otherwise (DB-18); none is for ever."""
    assert "maximum lifetime\t30d" in memory("manager", "show").lines
    assert memory("manager", "alter", "--maximum-lifetime", "7d").code == OK
    assert "maximum lifetime\t7d" in memory("manager", "show").lines
    assert memory("manager", "alter", "--maximum-lifetime", "none", "--json").code == OK
    assert "maximum lifetime\tnone" in memory("manager", "show").lines
    assert memory("manager", "alter", "--no-automatic-creation").code == OK
    assert memory("manager", "show", "--json").document["automatic_creation"] is False


def test_manager_shows_how_far_log_time_is_ahead_of_the_clock(memory, broker_in_memory):
    """Nothing while it is not; a day, after the clock was a day ahead and was set back (H6)."""
    broker_in_memory.advance(1)
    assert "ahead of the clock\tnone" in memory("manager", "show").lines
    broker_in_memory.advance(86_400)
    broker_in_memory._now_us -= 86_400_000_000
    broker_in_memory.advance(0)
    assert "ahead of the clock\t1 day, 0:00:00" in memory("manager", "show").lines
    told = memory("manager", "show", "--json").document
    assert told["time"].startswith("2026-01-02T")
    assert told["time_reference"].startswith("2026-01-01T")


def test_redelivery_has_an_option_for_each_setting(memory):
    """A queue's limit, delays and error destination (INF-12, INF-15, INF-16)."""
    assert memory("queue", "create", "dead").code == OK
    created = ("queue", "create", "q", "--redelivery-limit", "3", "--error-destination", "dead")
    delays = ("--redelivery-delay-override", "500ms", "--redelivery-delay-multiplier", "1.5")
    more = ("--redelivery-delay-max", "1m", "--redelivery-steps", "5:1000; 10:60000")
    assert memory(*created, *delays, *more).code == OK
    lines = memory("queue", "show", "q").lines
    assert "redelivery limit\t3" in lines
    assert "redelivery delay multiplier\t1.5" in lines
    assert "redelivery delay max\t1m" in lines
    assert "redelivery steps\t5:1000; 10:60000" in lines
    assert "error destination\tqueue:dead" in lines
    off = ("--redelivery-limit", "none", "--redelivery-steps", "none")
    assert memory("queue", "alter", "q", *off).code == OK
    lines = memory("queue", "show", "q").lines
    assert "redelivery limit\tnone" in lines
    assert "redelivery steps\tnone" in lines


def test_db_21_redelivery_is_given_as_one_string(memory):
    """In the place of the single options; what is wrong in it is told (DB-21)."""
    assert memory("queue", "create", "q.dead").code == OK
    string = ("--redelivery", "5:1000; 10:5000; 50:move(queue:$.dead)")
    assert memory("queue", "create", "q", *string).code == OK
    settings = memory("queue", "show", "q", "--json").document["settings"]
    assert (settings["redelivery_limit"], settings["error_destination"]) == (50, "queue:q.dead")
    assert memory("topic", "create", "t", *string[:1], "2:delete").code == OK
    for wrong in ("5:9999", "soon"):
        answer = memory("queue", "alter", "q", "--redelivery", wrong)
        assert answer.code != OK
        assert wrong in answer.err
    answer = memory("queue", "alter", "q", "--redelivery-steps", "soon")
    assert answer.code == USAGE
    assert "retries:delay" in answer.err


@pytest.mark.parametrize(
    "options",
    [
        ("--bytes-max", "99999999999999999999"),
        ("--time-to-live-override", "99999999999999999999d"),
        ("--redelivery-limit", str(2**40)),
        ("--redelivery-delay-multiplier", "nan"),
        ("--redelivery-delay-multiplier", "inf"),
        ("--redelivery", "5:6000:1"),
        ("--redelivery", "5:1000; 3:10"),
        ("--redelivery", "5:1000", "--error-destination", "queue:dead"),
    ],
    ids=" ".join,
)
def test_a_value_that_cannot_be_is_wrong_use(memory, options):
    """It is said in a sentence, and no queue is made."""
    answer = memory("queue", "create", "q", *options, "--json")
    assert (answer.code, bool(answer.error["message"])) == (USAGE, True)
    assert memory("queue", "list", "--json").document == []


def test_a_name_that_no_queue_can_have_is_wrong_use(memory):
    """As is any other value that cannot be."""
    assert memory("queue", "create", "bad name!").code == USAGE
