"""Judges the history of a fault run: was anything lost, doubled, invented, torn or out of order?

Plain Python over what clients wrote (`history`), knowing nothing of LedgerMQ but queues, bodies and
sequence numbers. Each law is a function of the facts that yields violations, each with the bodies
that it is about; their lines are the witness. A unit of work whose outcome a client never learnt
may have acted or not, but as a whole.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from support.faults.history import Line

Place = tuple[str, str]
# What a client is told by an error where the outcome truly is unknown after its time-out.
UNKNOWN_ERRORS = ("outcome-unknown", "transaction-in-doubt")
WITNESS_LINES_MAX = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A law that is broken, and the bodies that it is about."""

    law: str
    text: str
    bodies: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class Unit:
    """A unit of work as a client knows it: what it put and took, and how that ended."""

    client: str
    what: str
    puts: list[Place]
    gets: list[Place]
    invoked_at: float
    end: str = "unknown"
    ended_at: float = 0.0

    @property
    def acted(self) -> bool:
        """Whether its client knows that it took effect."""
        return self.end == "ok" and self.what not in UNDOING

    @property
    def may_have_acted(self) -> bool:
        """Whether it took effect, as far as anybody knows."""
        return self.end != "fail" and self.what not in UNDOING


UNDOING = ("rollback", "recover", "requeue")


@dataclass(slots=True, kw_only=True)
class Facts:
    """What a history says, by message."""

    units: list[Unit] = field(default_factory=list)
    got: dict[Place, list[Line]] = field(default_factory=lambda: defaultdict(list))
    by_consumer: dict[tuple[str, str], list[Line]] = field(
        default_factory=lambda: defaultdict(list)
    )
    lines: list[Line] = field(default_factory=list)
    # When the nemesis first laid hands on a client, by role.
    hurt_at: dict[str, float] = field(default_factory=dict)

    def is_hurt(self, client: str, at: float) -> bool:
        """Whether a client of the same role was killed or frozen before."""
        return self.hurt_at.get(role_of(client), at) < at

    @property
    def counts(self) -> Counter[str]:
        """How much there was of what."""
        counts = Counter(line["step"] for line in self.lines)
        for unit in self.units:
            counts[f"units {unit.end}"] += 1
            counts["messages put"] += len(unit.puts) if unit.acted else 0
            counts["messages taken"] += len(unit.gets) if unit.acted else 0
        errors = (line["error"] for line in self.lines if line["step"] == "unknown")
        return counts + Counter(f"error {one}" for one in errors)


def role_of(client: str) -> str:
    """A client's name is its role and a number."""
    return client.rpartition("-")[0]


def facts_of(lines: Iterable[Line]) -> Facts:
    """What the lines say, which are in the order of their times."""
    facts = Facts()
    open_units: dict[tuple[str, int], Unit] = {}
    for line in lines:
        facts.lines.append(line)
        step, client = line["step"], line["client"]
        if step == "invoke":
            unit = Unit(
                client=client,
                what=line["what"],
                puts=[(queue, body) for queue, body in line["puts"]],
                gets=[(queue, body) for queue, body, _ in line["gets"]],
                invoked_at=line["at"],
            )
            facts.units.append(unit)
            open_units[client, line["unit"]] = unit
        elif step in ("ok", "fail"):
            unit = open_units[client, line["unit"]]
            unit.end, unit.ended_at = step, line["at"]
        elif step == "got":
            facts.got[line["queue"], line["body"]].append(line)
            facts.by_consumer[client, line["queue"]].append(line)
        elif step == "fault":
            for name in line["hurts"]:
                facts.hurt_at.setdefault(role_of(name), line["at"])
    return facts


# The laws --------------------------------------------------------------------------------------


def nothing_is_lost(facts: Facts) -> Iterator[Violation]:
    """I1, I11: what was confirmed was taken by somebody; a run ends with empty queues."""
    taken = {place for unit in facts.units if unit.may_have_acted for place in unit.gets}
    for unit in facts.units:
        for queue, body in unit.puts:
            if unit.acted and (queue, body) not in taken:
                yield Violation(law="I1", text=f"{body} on {queue} is lost", bodies=(body,))


def nothing_is_invented(facts: Facts) -> Iterator[Violation]:
    """I2: what was got had been put by a unit of work that acted, or whose end is unknown."""
    put = {place for unit in facts.units if unit.may_have_acted for place in unit.puts}
    for queue, body in facts.got:
        if (queue, body) not in put:
            text = f"{body} came from {queue}, where nobody's work ever put it"
            yield Violation(law="I2", text=text, bodies=(body,))


def nothing_is_taken_twice(facts: Facts) -> Iterator[Violation]:
    """I3: a message is consumed once; what AUTO hands over again is marked as redelivered."""
    consumed = Counter(
        place for unit in facts.units if unit.acted and unit.what != "taken" for place in unit.gets
    )
    for (queue, body), times in consumed.items():
        if times > 1:
            text = f"{body} on {queue} was consumed by {times} units of work"
            yield Violation(law="I3", text=text, bodies=(body,))
    for (queue, body), lines in facts.got.items():
        if any(line["count"] == 1 for line in lines[1:]):
            text = f"{body} on {queue} came again and did not say so"
            yield Violation(law="I3", text=text, bodies=(body,))


def what_was_consumed_never_comes_again(facts: Facts) -> Iterator[Violation]:
    """I3: nobody is handed a message once a client knows that it has consumed it."""
    for unit in facts.units:
        if not unit.acted or unit.what == "taken":
            continue
        for queue, body in unit.gets:
            lines = facts.got.get((queue, body), [])
            later = [line for line in lines if line["at"] > unit.ended_at]
            if later:
                text = f"{body} of {queue} came to {later[0]['client']} after it was consumed"
                yield Violation(law="I3", text=text, bodies=(body,))


def nothing_is_put_twice(facts: Facts) -> Iterator[Violation]:
    """I4, I5: a message has one sequence number, and a number has one message."""
    numbers: dict[tuple[str, int], str] = {}
    for (queue, body), lines in facts.got.items():
        found = sorted({line["sequence"] for line in lines})
        if len(found) > 1:
            text = f"{body} is on {queue} as {found}"
            yield Violation(law="I4", text=text, bodies=(body,))
        other = numbers.setdefault((queue, found[0]), body)
        if other != body:
            text = f"number {found[0]} of {queue} is {other} and {body}"
            yield Violation(law="I5", text=text, bodies=(other, body))


def order_is_kept(facts: Facts) -> Iterator[Violation]:
    """I6: numbers rise as a producer put, and as a consumer first gets."""
    last: dict[tuple[str, str], tuple[int, int, str]] = {}
    numbers = {place: lines[0]["sequence"] for place, lines in facts.got.items()}
    for unit in facts.units:
        for queue, body in unit.puts:
            number = numbers.get((queue, body))
            maker, _, count = body.partition(":")
            # What is rejected is in no order of whoever made it.
            if number is None or not count.isdigit() or unit.what == "reject":
                continue
            before = last.get((maker, queue))
            if before is not None and before[1] > number:
                text = f"{before[2]} was put to {queue} before {body}, and is behind it"
                yield Violation(law="I6", text=text, bodies=(before[2], body))
            last[maker, queue] = (int(count), number, body)
    for (client, queue), lines in facts.by_consumer.items():
        highest: Line | None = None
        for line in lines:
            # Behind a consumer that is lost, the next one gets what that had not seen yet.
            if facts.is_hurt(client, line["at"]) or queue == "groups":
                break
            if line["count"] > 1:
                continue
            if highest is not None and line["sequence"] < highest["sequence"]:
                text = f"{client} got {highest['body']} of {queue} before {line['body']}"
                yield Violation(law="I6", text=text, bodies=(highest["body"], line["body"]))
            highest = line


def work_is_whole(facts: Facts) -> Iterator[Violation]:
    """I7: of a unit of work either all puts are there or none, and none of one that failed."""
    for unit in facts.units:
        if unit.what == "send":
            continue
        there = [place for place in unit.puts if place in facts.got]
        if there and not unit.may_have_acted:
            bodies = tuple(body for _, body in there)
            yield Violation(
                law="I7", text=f"{unit.what} that undid it shows {bodies}", bodies=bodies
            )
        elif 0 < len(there) < len(unit.puts):
            missing = tuple(body for queue, body in unit.puts if (queue, body) not in facts.got)
            text = f"of one unit of work {missing} are not there, the other {len(there)} are"
            yield Violation(law="I7", text=text, bodies=missing + tuple(body for _, body in there))


def taken_and_put_go_together(facts: Facts) -> Iterator[Violation]:
    """I7: what a unit of work took is gone for all others exactly if what it put is there."""
    takers: dict[Place, list[Unit]] = defaultdict(list)
    for unit in facts.units:
        if unit.may_have_acted and unit.what != "taken":
            for place in unit.gets:
                takers[place].append(unit)
    for place, units in takers.items():
        acted = [one for one in units if one.acted or any(put in facts.got for put in one.puts)]
        if len(acted) > 1:
            text = f"{place[1]} on {place[0]} was taken by {len(acted)} units that put something"
            yield Violation(law="I7", text=text, bodies=(place[1],))


def what_comes_back_is_counted(facts: Facts) -> Iterator[Violation]:
    """I8: a message that was handed over comes again with a higher count, whoever gets it."""
    for (queue, body), lines in facts.got.items():
        counts = [line["count"] for line in lines]
        if any(later <= earlier for earlier, later in pairwise(counts)):
            text = f"{body} of {queue} came with the counts {counts}"
            yield Violation(law="I8", text=text, bodies=(body,))


def groups_come_whole(facts: Facts) -> Iterator[Violation]:
    """I6: a group that was put in one unit of work is taken in one, in its order."""
    groups = {place: unit for unit in facts.units if unit.what == "commit" for place in unit.puts}
    for unit in facts.units:
        if not unit.acted or not unit.gets or unit.gets[0][0] != "groups":
            continue
        wanted = groups.get(unit.gets[0])
        if not unit.client.startswith("draining") and (wanted is None or wanted.puts != unit.gets):
            bodies = tuple(body for _, body in unit.gets)
            yield Violation(law="I6", text=f"no whole group was taken: {bodies}", bodies=bodies)


def one_at_a_time(facts: Facts) -> Iterator[Violation]:
    """I6: of a queue that delivers to one consumer at a time nobody gets anything while another
    consumer has a message that it settles (PROTOCOL.md §18).
    """
    handed = [line for line in facts.lines if line["step"] == "got" and line["queue"] == "single"]
    times = [line["at"] for line in handed]
    for unit in facts.units:
        for place in unit.gets if unit.acted else ():
            lines = facts.got[place] if place[0] == "single" else ()
            mine = [line["at"] for line in lines if line["client"] == unit.client]
            since = max((at for at in mine if at <= unit.invoked_at), default=unit.invoked_at)
            until = bisect_left(times, unit.invoked_at)
            for line in handed[bisect_left(times, since) : until]:
                if line["client"] != unit.client:
                    text = f"{line['client']} got {line['body']} while {unit.client} had {place[1]}"
                    yield Violation(law="I6", text=text, bodies=(place[1], line["body"]))


def no_error_shows(facts: Facts) -> Iterator[Violation]:
    """Fail-over: clients that were left alone see a delay and no error but an unknown outcome."""
    hurt = {one for line in facts.lines if line["step"] == "fault" for one in line["hurts"]}
    for line in facts.lines:
        if line["step"] not in ("unknown", "fail", "error") or line["client"] in hurt:
            continue
        if line["error"] not in UNKNOWN_ERRORS:
            text = f"{line['client']} was shown {line['error']}: {line.get('text', '')}"
            yield Violation(law="I12", text=text)


LAWS: tuple[Callable[[Facts], Iterator[Violation]], ...] = (
    nothing_is_lost,
    nothing_is_invented,
    nothing_is_taken_twice,
    what_was_consumed_never_comes_again,
    nothing_is_put_twice,
    order_is_kept,
    work_is_whole,
    taken_and_put_go_together,
    what_comes_back_is_counted,
    groups_come_whole,
    one_at_a_time,
    no_error_shows,
)


def judge(facts: Facts) -> list[Violation]:
    """All that is wrong, law by law."""
    return [violation for law in LAWS for violation in law(facts)]


def witness(facts: Facts, violation: Violation) -> list[Line]:
    """The lines that a violation is about, the first of them."""
    wanted = set(violation.bodies)

    def is_about(line: Line) -> bool:
        named = {line.get("body")}
        named |= {one[1] for one in [*line.get("puts", ()), *line.get("gets", ())]}
        return not wanted.isdisjoint(named)

    return [line for line in facts.lines if is_about(line)][:WITNESS_LINES_MAX]
