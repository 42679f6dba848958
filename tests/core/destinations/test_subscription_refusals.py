"""Refusals for subscriptions that are in use say who holds what, whatever the state came from."""

from __future__ import annotations

import re

import pytest

from support.scripts.play import Player, play_lines

IN_USE = """
A: open CLIENT client=c
B: open TRANSACTED client=d
A: consumer 1 topic:t both=s
A: get 2
A: put topic:t M N -> enqueued 0..1; delivered M@0 N@1
A: close-consumer 1
"""


def detail_of(player: Player, line: str) -> str:
    """The text of the refusal that a line is answered with."""
    player.go_on(line)
    session = player.state.sessions[0]
    return session.replies[session.last_sequence].detail


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize(
    "line",
    [
        "A: consumer 2 topic:u both=s -> refused subscription-in-use",
        "A: consumer 2 topic:t both=s selector=n~>~1 -> refused subscription-in-use",
        "A: unsubscribe s -> refused subscription-in-use",
    ],
)
def test_who_holds_what_is_named_where_a_subscription_cannot_end(line, restarts):
    """With unsettled deliveries and no consumer it is not made anew, nor deleted (decision 33)."""
    player = play_lines(IN_USE, restarts=restarts)
    assert "session 0 of client id 'c' has 0 consumers and holds 2 deliveries" in detail_of(
        player, line
    )


def test_of_many_users_a_refusal_names_some_and_counts_the_rest():
    """A text stays short however many sessions use a subscription (SES-59)."""
    lines = ["A: open"]
    for number in range(8):
        lines += [f"{chr(66 + number)}: open", f"{chr(66 + number)}: consumer 1 topic:t both=s"]
    player = play_lines(*lines)
    detail = detail_of(player, "A: consumer 1 topic:u both=s -> refused subscription-in-use")
    assert len(re.findall(r"session \d+ has 1 consumers and holds 0 deliveries", detail)) == 5
    assert detail.endswith("and 3 more; close its consumers and settle their messages first")


@pytest.mark.parametrize(
    ("stands", "asked", "kind"),
    [("durable=s", "both=s", "not shared"), ("both=s", "durable=s", "shared")],
)
def test_of_which_kind_a_name_is_taken_is_said(stands, asked, kind):
    """The name is for subscriptions of one kind: who asks for the other learns which (SES-60)."""
    player = play_lines("A: open CLIENT client=c", f"A: consumer 1 topic:t {stands}")
    detail = detail_of(player, f"A: consumer 2 topic:t {asked} -> refused subscription-differs")
    assert detail == f"subscription 's' of client id 'c' is {kind}: use another name"
