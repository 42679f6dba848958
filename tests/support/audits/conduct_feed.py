"""Feeds the audit's scans of connections with a log and what its fold delivered, without Spark.

What the fold refuses and what it does to sessions is not looked at: the scans must come to that by
themselves, but for queues that are there and settings that are right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from ledgermq.core.state.manager import new_state
from ledgermq.protocol.outcomes import Delivered
from ledgermq.wire.framing.codec import decode_operation
from ledgermq_spark.derivation.acts import EVENT_TEXTS, Act, Event
from ledgermq_spark.derivation.administration import read_directory
from ledgermq_spark.derivation.conduct import ConnectionScan
from ledgermq_spark.derivation.directory import AdministrationRow, Directory
from ledgermq_spark.log.headers import group_text
from ledgermq_spark.log.rows import OPERATION_COLUMNS, operation_row
from support.audits.walk_feed import is_late
from support.brokers.log_writer import Entry, Script, fold_one

ASKED = ("RollbackTransaction", "EndSession", "AlterQueueManager", "AlterQueue", "AlterTopic")
LISTS = ("firsts", "lasts", "groups")
Row = dict[str, Any]


class Scans:
    """The scans of all connections, what they told, and the directory that they agree with."""

    def __init__(self, script: Script, queue_refusals: dict[int, str] | None = None) -> None:
        self._script = script
        self._rows = [_row(position, one) for position, one in enumerate(script.entries)]
        self.times = _state_times(script)
        self.directory = Directory(queue_refusals=queue_refusals or {})
        while True:
            self.acts: list[Act] = []
            self.sessions: dict[int, Any] = {}
            self._scan()
            found = read_directory(self._asked(), {})
            found.queue_refusals = self.directory.queue_refusals
            settled = found.bearing() == self.directory.bearing()
            self.directory = found
            if settled:
                break

    @property
    def refused(self) -> dict[int, str]:
        """Operations that are refused, and why, as scans and directory say it."""
        told = {one.position: one.reason for one in self.acts if one.what == "act" and one.reason}
        return told | self.directory.refusals

    def _scan(self) -> None:
        by_connection: dict[Any, list[tuple[tuple[int, int, int], Event]]] = defaultdict(list)
        opens = {one["position"]: one["connection"] for one in self._rows if one["kind"] == "Open"}
        for row in self._rows:
            if row["kind"] == "Open":
                told = row | {"session": -1}
                by_connection[row["connection"]].append(self._event(told, "operation", 1))
            elif row["session"] is not None:
                by_connection[opens.get(row["session"])].append(self._event(row, "operation", 1))
            for order, handle in enumerate(row["sessions"] or ()):
                told = {name: row[name] for name in ("position", "append_time_us", "kind")}
                event = self._event(told | {"session": handle}, "suspect", 1, order)
                by_connection[opens.get(handle)].append(event)
        for claim, phase in self.claims():
            event = self._event(claim, "claim", phase, claim["index"])
            by_connection[opens.get(claim["session"])].append(event)
        for position, kind, handle in self.directory.endings:
            told = {"position": position, "session": handle, "kind": kind}
            by_connection[opens.get(handle)].append(self._event(told, "ending", 1))
        for connection, events in by_connection.items():
            scan = ConnectionScan(self.directory, connection)
            for _, event in sorted(events, key=lambda one: one[0]):
                self.acts.extend(scan.take(event))
            self.sessions |= scan._sessions

    def claims(self) -> Iterator[tuple[Row, int]]:
        """Deliveries as outcomes claim them, with their phase."""
        for position, found in enumerate(self._script.outcomes):
            told = [one.outcome for one in found]
            replies = [
                one.index for one in told if not isinstance(one, Delivered) and not is_late(one)
            ]
            late = any(is_late(one) for one in told)
            for one in told:
                if isinstance(one, Delivered):
                    before = one.index < min(replies) if replies else late
                    yield _claim(position, one), 0 if before else 2

    def _event(
        self, row: Row, what: str, phase: int, order: int = 0
    ) -> tuple[tuple[int, int, int], Event]:
        told = {"what": what, "phase": phase, "state_time": self.times[row["position"]]} | row
        whole = [
            one + two
            for one, two in zip(
                row.get("sizes_bytes") or (), row.get("headers_bytes") or (), strict=True
            )
        ]
        told |= {"firsts": row.get("range_first"), "lasts": row.get("range_last")}
        told["text"] = row.get("options")
        if whole:
            told |= {
                "count": len(whole),
                "priority_low": min(row["priorities"]),
                "priority_high": max(row["priorities"]),
                "size_low": min(row["sizes_bytes"]),
                "size_high": max(row["sizes_bytes"]),
                "header_high": max(row["headers_bytes"]),
                "whole_high": max(whole),
                "whole_sum": sum(whole),
            }
        empty = {name: [] if name in LISTS else "" for name in (*LISTS, *EVENT_TEXTS)}
        values = {name: told.get(name) for name in Event._fields}
        event = Event(
            **{
                name: empty.get(name, 0) if value is None else value
                for name, value in values.items()
            }
        )
        return (event.position, event.phase, order), event

    def _asked(self) -> list[AdministrationRow]:
        done = [one for one in self.acts if one.what == "act" and one.reason is None]
        in_turn = {one.position for one in done}
        uses = [
            AdministrationRow(one.position or 0, "Use", one.queue or "")
            for one in done
            if one.kind in ("Put", "OpenConsumer")
        ]
        return uses + [
            AdministrationRow(
                *(row["position"], row["kind"], row["target"] or "", row["number"]),
                session=-1 if row["session"] is None else row["session"],
                settings=row["settings"],
            )
            for row in self._rows
            if row["kind"] in ASKED and row["position"] in in_turn
        ]


def _row(position: int, entry: Entry) -> Row:
    values = operation_row(decode_operation(entry.value), position, entry.time_us, True)
    return dict(zip((name for name, _ in OPERATION_COLUMNS), values, strict=True))


def _state_times(script: Script) -> list[int]:
    state, times = new_state(), []
    contents: dict[tuple[int, int], bytes] = {}
    for position, entry in enumerate(script.entries):
        fold_one(state, contents, position, entry)
        times.append(state.time)
    return times


def _claim(position: int, one: Delivered) -> Row:
    headers = [message.get("header") or {} for message in one.messages]
    groups = [group_text(header.get("group")) for header in headers]
    return {
        "position": position,
        "index": one.index,
        "kind": "Delivered",
        "session": one.session,
        "consumer": one.consumer,
        "number": one.first_delivery,
        "count": len(one.messages),
        "in_doubt": int(one.in_doubt),
        "groups": groups if any(groups) else [],
    }
