"""How workers share queue managers: who keeps what it has, and who takes over the rest.

Theory of operation. Each worker tells the group which queue managers it has at work, since which
generation, and which it cannot fold because their protocol version is too new for it. One of them,
chosen by Kafka, shares out. A state that is loaded is worth keeping, so a queue manager stays
where it is as long as the shares are even; a worker that was frozen and comes back gets nothing
back by itself, because whoever took over had it in a later generation. One that a worker has
stopped, as its log or checkpoints are damaged, stays there and counts for nothing: any other worker
would stop it too. Partitions that no queue manager has are shared out too, so that whoever claims
one finds a worker waiting.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)

VERSION = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a worker tells the group of itself: its partitions, those of a version that it cannot
    fold, and those that it has stopped.
    """

    generation: int = -1
    owned: frozenset[int] = frozenset()
    unfit: frozenset[int] = frozenset()
    stopped: frozenset[int] = frozenset()

    def encode(self) -> bytes:
        told: dict[str, Any] = {"generation": self.generation, "owned": sorted(self.owned)}
        told |= {"unfit": sorted(self.unfit), "stopped": sorted(self.stopped)}
        return json.dumps(told).encode()

    @classmethod
    def decode(cls, value: bytes) -> Standing:
        told = json.loads(value)
        return cls(
            generation=told["generation"],
            owned=frozenset(told["owned"]),
            unfit=frozenset(told["unfit"]),
            # Workers of earlier versions end in place of stopping one.
            stopped=frozenset(told.get("stopped", ())),
        )


def share_out(
    claimed: Iterable[int], members: Mapping[str, Standing], unclaimed: Iterable[int] = ()
) -> dict[str, list[int]]:
    """Which partitions each member gets: evenly, with as few changes of hands as that takes.

    A partition that nobody can fold is given to nobody.
    """
    given: dict[str, list[int]] = {name: [] for name in sorted(members)}
    homeless: list[int] = []
    stopped = {one: name for name in given for one in members[name].stopped}
    wanted = sorted(set(claimed) - stopped.keys())
    share, spare = divmod(len(wanted), len(members))
    for partition in wanted:
        holder = _holder(partition, members)
        has = len(given[holder]) if holder else 0
        if holder and (has < share or (has == share and spare)):
            spare -= has == share
            given[holder].append(partition)
        else:
            homeless.append(partition)
    for partition in [*homeless, *sorted(unclaimed)]:
        fit = [name for name in given if partition not in members[name].unfit]
        if fit:
            given[min(fit, key=lambda name: len(given[name]))].append(partition)
    for partition in sorted(stopped.keys() & set(claimed)):
        given[stopped[partition]].append(partition)
    return given


def _holder(partition: int, members: Mapping[str, Standing]) -> str | None:
    """The member that has a partition, or had it last; it must be able to fold it."""
    found = [
        (standing.generation, name)
        for name, standing in members.items()
        if partition in standing.owned and partition not in standing.unfit
    ]
    return max(found)[1] if found else None


class Sharing:
    """What aiokafka calls an assignor.

    Args:
        topic: The operations topic.
        standing: Says what to tell the group; called in Kafka's thread.
        claimed: Says on which partitions there are queue managers; called there too.

    Attributes:
        workers: How many there were, this one too, when the group last shared out.
    """

    name = "ledgermq"

    def __init__(
        self,
        topic: str,
        standing: Callable[[], Standing],
        claimed: Callable[[], Collection[int]],
    ) -> None:
        self._topic = topic
        self._standing = standing
        self._claimed = claimed
        self.workers = 1

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        return ConsumerProtocolMemberMetadata(VERSION, list(topics), self._standing().encode())

    def assign(
        self, cluster: Any, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        there: set[int] = cluster.partitions_for_topic(self._topic) or set()
        claimed = there & set(self._claimed())
        standings = {name: Standing.decode(one.user_data) for name, one in members.items()}
        shares = share_out(claimed, standings, there - claimed)
        told = str(len(members)).encode()
        return {
            name: ConsumerProtocolMemberAssignment(VERSION, [(self._topic, partitions)], told)
            for name, partitions in shares.items()
        }

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Notes how many share; which partitions are its own the worker is told by Faust."""
        self.workers = int(assignment.user_data)
