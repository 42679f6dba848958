"""What the groups of a queue say of themselves when asked (GRP-46)."""

from __future__ import annotations

from ledgermq.core.queries import group_status as group_query
from ledgermq.core.queries import questions as query
from support.checks.calls import calls_of
from support.messages.group_state import group_of, state_with_groups
from support.messages.large_states import LargeState
from support.scripts.play import play_lines
from support.scripts.verbs import group_id

GROUP = bytes(23) + b"g"


def ask(kind: str, **fields: object) -> dict[str, object]:
    """A question about the groups of q."""
    place = {"group_sequence": 0, "offset": 0}
    return {"kind": kind, "queue": "q", "group_id": b"", "limit": 10, **place, **fields}


def test_groups_are_told_page_by_page():
    """By group id, behind the one given; more says whether there are others (GRP-46)."""
    state = state_with_groups()
    first = query.answer(state, ask("GROUPS", limit=1), "QM1", "w").document
    assert (first["more"], [one["group_id"] for one in first["groups"]]) == (
        True,
        [group_id("G").hex()],
    )
    assert (first["groups"][0]["held"], first["groups"][0]["missing"]) == (2, [])
    rest = query.answer(state, ask("GROUPS", group_id=group_id("G")), "QM1", "w").document
    assert (rest["more"], len(rest["groups"])) == (False, 1)
    assert (rest["groups"][0]["clashing"], rest["groups"][0]["items"]) == ([4], 2)


def test_one_group_is_told_with_its_members_or_group_unknown():
    """Members in logical order with where they are, or the reason group-unknown (GRP-46)."""
    state = state_with_groups()
    found = query.answer(state, ask("GROUP", group_id=group_id("G")), "QM1", "w").document
    states = [(one["group_sequence"], one["offset"], one["state"]) for one in found["members"]]
    assert states == [(1, 0, "held"), (2, 0, "held"), (2, 5, "available")]
    assert found == group_query.group_document(state.queues["q"], group_of(state))
    least = query.answer(state, ask("GROUP", group_id=group_id("G"), limit=0), "QM1", "w").document
    assert (least["members"], least["more"]) == (found["members"][:1], True)
    refused = query.answer(state, ask("GROUP", group_id=group_id("X")), "QM1", "w")
    assert refused.reason == "group-unknown"


def test_a_long_group_is_told_page_by_page():
    """Each page goes on behind a place; clashing items stand on the last one (GRP-46)."""
    state = state_with_groups()
    whole = query.answer(state, ask("GROUP", group_id=group_id("G")), "QM1", "w").document
    seen, after, more = [], (0, 0), True
    while more:
        place = {"group_sequence": after[0], "offset": after[1], "limit": 1}
        page = query.answer(
            state, ask("GROUP", group_id=group_id("G"), **place), "QM1", "w"
        ).document
        seen += page["members"]
        more = page["more"]
        after = (seen[-1]["group_sequence"], seen[-1]["offset"])
    assert seen == whole["members"]
    assert not whole["more"]


def test_of_a_group_at_most_10_000_gaps_are_told():
    """A group of every second message has a gap before each; the first 10,000 are told (GRP-46)."""
    most = " ".join(f"M{at}{{g=G.{2 * at}}}" for at in range(1, 10_001))
    last = "M10001{g=G.20002}"
    lines = ("open", f"put q {most} -> enqueued 0..9999", f"put q {last} -> enqueued 10000..10000")
    state = play_lines(*lines, with_model=False).state
    (told,) = query.answer(state, ask("GROUPS"), "QM1", "w").document["groups"]
    assert (told["items"], len(told["missing"])) == (10_001, 10_000)
    assert (told["missing"][0], told["missing"][-1]) == ([1, 1], [19_999, 19_999])


def test_a_page_of_a_long_group_costs_what_it_shows():
    """Of a group of 2,000 a page of 10 looks at no other member, and its status at none."""
    large = LargeState()
    session = large.open()
    for number in range(1, 2_001):
        large.grouped(session, "queue:q", GROUP, number, last_in_group=number == 2_000)
    queue = large.state.queues["q"]
    told = {}

    def page():
        group = queue.groups[GROUP]
        told["page"] = group_query.group_document(queue, group, (1_000, 0), 10)

    assert calls_of(page) < 1_000
    assert [one["group_sequence"] for one in told["page"]["members"]] == [*range(1_001, 1_011)]
    assert (told["page"]["items"], told["page"]["missing"]) == (2_000, [])
    assert calls_of(lambda: group_query.group_statuses(queue, b"", 10)) < 500
