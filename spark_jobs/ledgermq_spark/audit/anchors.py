"""Anchors: whether the operations are those that chunks, checkpoints and people took a digest of.

The digest chain over what stands on the log is compared with every anchor (PROTOCOL.md §10). An
anchor that agrees proves the records at or below it; one that does not proves that one of them is
not what it was, or the anchor is not. What is said of the first position that differs is bounded
by the anchors around it, and never narrower.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ledgermq.errors import LedgerMQError
from ledgermq_spark.audit.findings.evidence import Evidence
from ledgermq_spark.laws.engines.engine import Frame
from ledgermq_spark.log.rows import columns_of
from ledgermq_spark.pages.page import counted

DIGEST_BYTES = 32
GIVEN, CHECKPOINT, OUTCOMES, ARCHIVE = "given", "checkpoint", "outcomes", "backup"
SOURCES = {
    GIVEN: "the anchor that was given",
    CHECKPOINT: "the checkpoint",
    ARCHIVE: "the backup of the journal",
    OUTCOMES: "the chunk of outcomes",
}
# Each anchor once, and whether it agrees; null where the chain does not reach.
COMPARED: Final = f"""
WITH
anchors AS (
    SELECT position, chain_digest AS digest, '{OUTCOMES}' AS source FROM {{rows}}
    WHERE chain_digest IS NOT NULL
    UNION
    SELECT position, digest, source FROM {{others}}
),
chain AS (
    SELECT first + at AS position,
        substring(payload, CAST(at * {DIGEST_BYTES} + 1 AS INT), {DIGEST_BYTES}) AS here
    FROM (SELECT position AS first, payload FROM {{links}})
        LATERAL VIEW explode(
            sequence(0, CAST(octet_length(payload) DIV {DIGEST_BYTES} AS INT) - 1)) AS at
)
SELECT anchors.position, source, here = digest AS agrees
FROM anchors LEFT JOIN chain ON anchors.position = chain.position
"""
SIGHTED: Final = """
SELECT source, agrees, count(*) AS total, min(position) AS lowest, max(position) AS highest
FROM {rows} GROUP BY source, agrees ORDER BY source, agrees
"""


class AnchorInvalidError(LedgerMQError, ValueError):
    """A text is no anchor: it must be a position, a colon, and 64 hexadecimal digits."""

    code = "anchor-invalid"


class Anchor(NamedTuple):
    """A position and the digest chain that somebody saw there; `source` says who."""

    position: int
    digest: bytes
    source: str = GIVEN


class Sighting(NamedTuple):
    """Anchors of one source that agree, differ, or (`agrees` None) lie above what was read."""

    source: str
    agrees: bool | None
    total: int
    lowest: int
    highest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainProof:
    """What the anchors prove of the operations log, of which it is known from `start` on.

    `proven_until` is the highest position at or below which every record is the one that an anchor
    was taken of, -1 if none; `differs_from` and `differs_to` bound the first position that differs.
    `counts` says how many anchors of which source were compared.
    """

    position: int
    start: int = 0
    anchors: int = 0
    agreeing: int = 0
    proven_until: int = -1
    differs_from: int | None = None
    differs_to: int | None = None
    counts: dict[str, int] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for JSON."""
        return {name: getattr(self, name) for name in self.__slots__}

    def told(self) -> str:
        """One sentence for people."""
        positions = f"chain of {counted(self.position + 1 - self.start, 'positions')}"
        if self.start:
            positions += f" from {self.start} on"
        if not self.anchors:
            return f"{positions}: there is no anchor to compare it with"
        of = ", ".join(f"{count:,} {source}" for source, count in self.counts.items())
        if self.agreeing == self.anchors:
            text = f"{positions} agrees with {counted(self.anchors, 'anchors')} ({of})"
            if self.proven_until < self.position:
                text += f"; none lies above position {self.proven_until}"
            return text
        differing = self.anchors - self.agreeing
        return (
            f"{positions} differs from {differing:,} of {counted(self.anchors, 'anchors')} ({of})"
        )


def parse_anchor(text: str) -> Anchor:
    """Reads `POSITION:DIGEST`, as `ledgermq chain show` prints it (`QM1@` may stand before).

    Raises:
        AnchorInvalidError: The text is no anchor.
    """
    found = re.fullmatch(r"(?:[^:]*@)?([0-9]{1,18}):([0-9a-fA-F]{64})", text.strip())
    if found is None:
        raise AnchorInvalidError(
            f"{text!r} is no anchor: write POSITION:DIGEST, as `ledgermq chain show` prints it"
        )
    return Anchor(int(found[1]), bytes.fromhex(found[2]))


def anchor_findings(
    links: Frame,
    recorded: Frame,
    others: Sequence[Anchor],
    position: int,
    *,
    log_ends: bool,
    start: int = 0,
) -> tuple[ChainProof, list[Evidence], list[str]]:
    """Compares the chain with every anchor; what is proven, what differs, what stays unproven.

    Args:
        links: The chain, as rows of `position` (of the first) and `payload` (32 bytes a position).
        recorded: The outcomes on the lanes; the last one of a chunk has its `chain_digest`.
        others: Anchors from elsewhere, none above the end of the log (`above`).
        position: The last position of which the chain is known.
        log_ends: Whether the log ends at that position.
        start: The first position of which the chain is known.
    """
    given = recorded.beside("anchors", columns_of(Anchor), [tuple(one) for one in others])
    compared = recorded.ask(COMPARED, links=links, others=given)
    sightings = [Sighting(**row) for row in compared.rows(SIGHTED)]
    differing = [one.lowest for one in sightings if one.agrees is False]
    below = -1
    if differing:
        under = (
            f"SELECT max(position) AS at FROM {{rows}} WHERE agrees AND position < {min(differing)}"
        )
        ((highest,),) = (row.values() for row in compared.rows(under))
        below = -1 if highest is None else highest
    proof, evidence = prove(sightings, position, agreeing_below=below, start=start)
    return proof, evidence, [] if log_ends else _not_reached(others, position)


def _not_reached(others: Sequence[Anchor], position: int) -> list[str]:
    """Anchors that somebody gave and that lie above what was audited."""
    return [
        f"the anchor at position {one.position} was not compared: the audit reached {position}"
        for one in others
        if one.source == GIVEN and one.position > position
    ]


def prove(
    sightings: Sequence[Sighting],
    position: int,
    *,
    agreeing_below: int = -1,
    start: int = 0,
) -> tuple[ChainProof, list[Evidence]]:
    """What sightings prove, and the evidence against the log or against anchors.

    Args:
        sightings: What the comparison found.
        position: The last position of which the chain is known.
        agreeing_below: The highest anchor that agrees below the lowest that does not; -1: none.
        start: The first position of which the chain is known.
    """
    agreeing = [one for one in sightings if one.agrees]
    differing = sorted((one for one in sightings if one.agrees is False), key=lambda one: one[3])
    proven = max((one.highest for one in agreeing), default=-1)
    evidence: list[Evidence] = []
    bounds: tuple[int, int] | tuple[None, None] = (None, None)
    if differing:
        lowest = differing[0].lowest
        if proven >= lowest:
            # Whoever wrote the upper anchor saw the log as it is: nothing is proven to differ.
            evidence.append(_contradiction(differing, proven))
        else:
            bounds = (agreeing_below + 1, lowest)
            evidence.append(_differs(differing, bounds))
    counts: dict[str, int] = {}
    for source in SOURCES:
        count = sum(
            one.total for one in sightings if one.source == source and one.agrees is not None
        )
        if count:
            counts[source] = count
    proof = ChainProof(
        start=start,
        position=position,
        anchors=sum(counts.values()),
        agreeing=sum(one.total for one in agreeing),
        proven_until=proven,
        differs_from=bounds[0],
        differs_to=bounds[1],
        counts=counts,
    )
    return proof, evidence


def _contradiction(differing: Sequence[Sighting], proven: int) -> Evidence:
    lowest = differing[0].lowest
    return Evidence(
        kind="digest mismatch",
        source="chain",
        field="chain",
        position=lowest,
        summary=f"anchors contradict each other: {SOURCES[differing[0].source]} at position "
        f"{lowest} tells of other records at or below it than stand there, an anchor at position "
        f"{proven} of these: the lower anchor was altered, or the log was before the upper one was "
        "written",
        expected="anchors that agree",
        found=f"{sum(one.total for one in differing)} that do not",
    )


def _differs(differing: Sequence[Sighting], bounds: tuple[int, int]) -> Evidence:
    first, last = bounds
    count = sum(one.total for one in differing)
    what = (
        f"position {last} is the first that differs"
        if first == last
        else f"the first position that differs is one of {first} to {last}"
    )
    return Evidence(
        kind="altered operations",
        source="chain",
        field="chain",
        position=first,
        summary=f"the operations are not those that were folded: {what} (a record was altered, "
        "left out, put in or moved)",
        expected=f"the digest chain of {SOURCES[differing[0].source]} at position {last}",
        found=f"another one there; {count} anchors in all differ",
    )
