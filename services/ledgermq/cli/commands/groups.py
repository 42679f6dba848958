"""`ledgermq group`: what a queue holds of message groups, and what is missing of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, Final

import click

from ledgermq.cli.options.destinations import queue_from
from ledgermq.cli.options.moments import GROUP_ID_DIGITS
from ledgermq.cli.options.once import OnceGroup
from ledgermq.cli.options.target import Target, target_options
from ledgermq.cli.printing.blocked import counted, is_wholly_there, sentence
from ledgermq.cli.printing.output import Column, Output, cell_text, headed
from ledgermq.client.admin.admin import Admin
from ledgermq.errors import GroupNotFoundError
from ledgermq.protocol.documents.groups import GroupState

# People are shown so much of a group's id that it differs from the others, and at least this.
SHOWN_DIGITS_MIN: Final = 12
GAPS_SHOWN_MAX: Final = 5
CANDIDATES_SHOWN_MAX: Final = 5
# Groups looked into, one question each, to say what of them cannot be got.
LOOKED_INTO_MAX: Final = 200
AGE_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
WHY_NO_TOPIC: Final = "topics take no groups"

COLUMNS: Final = (
    *headed("group", "state", "since", whole=True),
    *headed("messages", "items", number=True),
    *headed("held", "clashing", number=True, detail=True),
    *headed("kept_for", "missing", detail=True),
)

ITEM_COLUMNS: Final = (
    Column(key="group_sequence", heading="MESSAGE", number=True),
    *headed("offset", "length", number=True, detail=True),
    Column(key="part", heading="PART"),
    Column(key="state", heading="STATE", whole=True),
    *headed("sequence", "priority", number=True),
    *headed("session", "consumer", number=True, detail=True),
)


@click.group(cls=OnceGroup)
def group() -> None:
    """Look at message groups and segmented messages."""


@group.command("list")
@click.argument("queue")
@click.option("--incomplete", is_flag=True, help="List only groups of which something is missing.")
@target_options
def list_groups(target: Target, output: Output, queue: str, incomplete: bool) -> None:
    """List the groups of which QUEUE holds something, the oldest first, and what is missing.

    Consumed messages are no longer in the queue, so they are missing too. The last line says how
    many messages cannot be got in logical order now, and why.
    """
    name = queue_from(queue, why=WHY_NO_TOPIC)
    with target.connect() as connection:
        admin = connection.admin
        found = sorted(admin.groups(name), key=lambda one: one.first_sequence)
        partly = [one for one in found if not is_wholly_there(one)]
        status = admin.queue_status(name)
        looked, all_there = _looked_into(admin, name, partly)
    reasons = counted(status, looked)
    shown = [one for one in found if not (incomplete and one.complete)]
    document = {
        "queue": name,
        "position": status.position,
        "message_count": status.message_count,
        "blocked": sum(reasons.values()),
        "blocked_at_least": not all_there,
        "blocked_by_reason": reasons,
        "groups": [_document(one) for one in shown],
    }
    named = shortened([one.group_id.hex() for one in found]) if output.for_people else {}
    rows = [_row(one, named, for_people=output.for_people) for one in shown]
    none = "no incomplete groups" if incomplete else "no groups"
    where = f"at {target.named(status.position)}" if rows else none
    output.table(COLUMNS, rows, caption=where, document=document)
    output.remark(sentence(status.message_count, reasons, at_least=not all_there))


def _looked_into(
    admin: Admin, queue: str, groups: Sequence[GroupState]
) -> tuple[list[GroupState], bool]:
    """The groups with their items; False beside them if some were too many to look into."""
    found, all_there = [], len(groups) <= LOOKED_INTO_MAX
    for one in groups[:LOOKED_INTO_MAX]:
        try:
            found.append(admin.group(queue, one.group_id))
        except GroupNotFoundError:
            continue  # it has left the queue meanwhile
    return found, all_there


@group.command()
@click.argument("queue")
@click.argument("group_id", metavar="GROUP")
@target_options
def show(target: Target, output: Output, queue: str, group_id: str) -> None:
    """Show every item of a group of QUEUE, who holds it, and between them what is missing.

    GROUP is its id in hexadecimal, or the beginning of it.
    """
    name = queue_from(queue, why=WHY_NO_TOPIC)
    digits = group_id.removeprefix("ID:").lower()
    if not re.fullmatch(rf"[0-9a-f]{{1,{GROUP_ID_DIGITS}}}", digits):
        raise click.UsageError(
            f"{group_id} is no id of a group: give up to {GROUP_ID_DIGITS} hexadecimal digits"
        )
    with target.connect() as connection:
        found = _found(connection.admin, name, digits)
    if output.for_people:
        output.fields(_fields(target, name, found))
        click.echo()
    document = {"queue": name, **_document(found), "members": _members(found)}
    output.table(ITEM_COLUMNS, list(_item_rows(found)), document=document)


def _found(admin: Admin, queue: str, digits: str) -> GroupState:
    if len(digits) < GROUP_ID_DIGITS:
        ids = [one.group_id.hex() for one in admin.groups(queue)]
        fitting = [one for one in ids if one.startswith(digits)]
        if not fitting:
            raise GroupNotFoundError(
                f"queue {queue} has no group whose id begins with {digits}; `ledgermq group list "
                f"{queue}` shows those there are",
                destination=f"queue:{queue}",
            )
        if len(fitting) > 1:
            more = " ..." if len(fitting) > CANDIDATES_SHOWN_MAX else ""
            raise click.UsageError(
                f"{digits} is the beginning of {len(fitting)} groups, give more digits: "
                + ", ".join(fitting[:CANDIDATES_SHOWN_MAX])
                + more
            )
        digits = fitting[0]
    return admin.group(queue, bytes.fromhex(digits))


def shortened(ids: Sequence[str]) -> dict[str, str]:
    """The beginning of each id that people are shown, long enough to differ from the others."""
    digits = SHOWN_DIGITS_MIN
    while len({one[:digits] for one in ids}) < len(set(ids)):
        digits += 2
    return {one: one[:digits] for one in ids}


def _state(found: GroupState) -> str:
    if not found.complete:
        return "incomplete"
    return "available" if found.available else "complete"


def missing_text(found: GroupState) -> str:
    gaps = [
        (first, f"message {first}" if first == last else f"messages {first} to {last}")
        for first, last in found.missing
    ]
    for one in found.missing_segments:
        until = "on" if one.end is None else f"to {one.end - 1}"
        of = f" of message {one.group_sequence}" if found.in_group else ""
        gaps.append((one.group_sequence, f"bytes {one.start} {until}{of}"))
    parts = [text for _, text in sorted(gaps, key=lambda one: one[0])]
    if len(parts) > GAPS_SHOWN_MAX:
        least = "at least " if found.missing_unlisted or found.missing_segments_unlisted else ""
        parts[GAPS_SHOWN_MAX:] = [f"{least}{len(parts) - GAPS_SHOWN_MAX} more gaps"]
    if _is_open_ended(found):
        parts.append(f"what comes after message {found.highest_group_sequence}")
    return ", ".join(parts)


def _is_open_ended(found: GroupState) -> bool:
    """Whether the group's last message is not there, so that nobody knows how many there are."""
    return found.in_group and not found.last_group_sequence


def age_text(seconds: float) -> str:
    left = max(0, int(seconds))
    for (size, unit), (smaller, smaller_unit) in pairwise(AGE_UNITS):
        if left >= size:
            rest = left % size // smaller
            return f"{left // size} {unit}" + (f" {rest} {smaller_unit}" if rest else "")
    return f"{left} s"


def _age(found: GroupState) -> str:
    return age_text((datetime.now(UTC) - found.first_enqueued_at).total_seconds())


def _kept_for(found: GroupState) -> str:
    holder = found.holder
    return "" if holder is None else f"session {holder.session}, consumer {holder.consumer}"


def _row(found: GroupState, named: dict[str, str], *, for_people: bool) -> dict[str, Any]:
    document = _document(found)
    whole = document["group_id"]
    return {
        **document,
        "group": named.get(whole, whole),
        "since": _age(found) if for_people else found.first_enqueued_at,
        "clashing": len(found.clashing) + found.clashing_unlisted,
        "kept_for": _kept_for(found),
        "missing": missing_text(found),
    }


def _fields(target: Target, queue: str, found: GroupState) -> dict[str, Any]:
    told = {
        "queue": queue,
        "group" if found.in_group else "segmented message": found.group_id.hex(),
        "state": _state(found),
        "missing": missing_text(found),
        "since": f"{cell_text(found.first_enqueued_at)} ({_age(found)})",
        "messages": found.messages,
        "items": found.items,
        "held": found.held,
        "kept for": _kept_for(found),
        "clashing": _clashing_text(found),
        "position": target.named(found.position),
    }
    return {label: value for label, value in told.items() if value != ""}


def _clashing_text(found: GroupState) -> str:
    others = [f"{found.clashing_unlisted:,} more"] if found.clashing_unlisted else []
    return ", ".join([*map(str, found.clashing), *others])


def _document(found: GroupState) -> dict[str, Any]:
    document = asdict(replace(found, members=()))
    del document["members"]
    return {**document, "group_id": found.group_id.hex(), "state": _state(found)}


def _members(found: GroupState) -> list[dict[str, Any]]:
    return [{**asdict(one), "clashing": one.sequence in found.clashing} for one in found.members]


def _item_rows(found: GroupState) -> Iterator[dict[str, Any]]:
    """The items in logical order with what is missing between them, then those that clash."""
    gaps = [*_missing_rows(found)]
    items = [one for one in found.members if one.sequence not in found.clashing]
    rows = [((one.group_sequence, one.offset), _item_row(asdict(one))) for one in items]
    for _, row in sorted([*gaps, *rows], key=lambda one: one[0]):
        yield row
    for one in found.members:
        if one.sequence in found.clashing:
            state = "clashing" if one.state == "clashing" else f"{one.state}, clashing"
            yield _item_row({**asdict(one), "state": state})


Placed = tuple[tuple[int, int], dict[str, Any]]
MISSING: Final = {"state": "missing"}


def _missing_rows(found: GroupState) -> Iterator[Placed]:
    for first, last in found.missing:
        numbers = first if first == last else f"{first} to {last}"
        yield (first, 0), {**MISSING, "group_sequence": numbers}
    for one in found.missing_segments:
        length = None if one.end is None else one.end - one.start
        told = {"group_sequence": one.group_sequence, "offset": one.start, "length": length}
        yield (one.group_sequence, one.start), {**MISSING, **told}
    if found.missing_unlisted:
        # They stand behind those that are listed.
        behind = found.missing[-1][1] + 1
        numbers = f"{found.missing_unlisted:,} more from {behind} on"
        yield (behind, 0), {**MISSING, "group_sequence": numbers}
    if _is_open_ended(found):
        behind = found.highest_group_sequence + 1
        yield (behind, 0), {**MISSING, "group_sequence": f"from {behind}"}


def _item_row(item: dict[str, Any]) -> dict[str, Any]:
    last = "last " if item["last_segment"] else ""
    parts = [f"{last}segment"] if item["segment"] else []
    parts += ["last message"] if item["last_in_group"] else []
    told = {**item, "part": ", ".join(parts)}
    # As text: session 0 is one too, and a column that holds nothing but zeros is left out.
    told |= {key: cell_text(item[key]) for key in ("session", "consumer")}
    if not item["segment"]:
        told["offset"] = told["length"] = None
    return told
