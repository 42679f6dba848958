"""Tests of what anchors prove of the operations log, and of what they do not (H14)."""

import hashlib

import pytest

from ledgermq_spark.audit.anchors import (
    CHECKPOINT,
    Anchor,
    AnchorInvalidError,
    anchor_findings,
    parse_anchor,
)
from ledgermq_spark.log.rows import BYTES, LONG
from support.audits.engines import duck_engine
from support.audits.frames import anchored_frame

END = 20
ORIGINAL = [(1_000 + at, b"record %d" % at) for at in range(END)]


def chain_of(records):
    """The digest chain at every position, as PROTOCOL.md section 10 defines it."""
    found, chain = [], bytes(32)
    for offset, (time_ms, value) in enumerate(records):
        head = offset.to_bytes(8, "big") + time_ms.to_bytes(8, "big")
        chain = hashlib.sha256(chain + head + value).digest()
        found.append(chain)
    return found


def altered(records, at):
    """The record at a position says something else."""
    return [*records[:at], (records[at][0], b"forged"), *records[at + 1 :]]


def left_out(records, at):
    """The record at a position is gone, those above move down."""
    return [*records[:at], *records[at + 1 :]]


def put_in(records, at):
    """A record stands at a position that was not there, those from there on move up."""
    return [*records[:at], (records[at][0], b"new"), *records[at:]]


def swapped(records, at):
    """The records at a position and after it have changed places."""
    return [*records[:at], records[at + 1], records[at], *records[at + 2 :]]


def findings(records, seen_at, *, others=(), seen=None, log_ends=True):
    """What is found on records if chunks at these positions saw the original."""
    links = chain_of(records)
    # Three batches, so that a link is found in any of them.
    cuts = [0, 7, 8, len(links)]
    rows = [(cuts[at], b"".join(links[cuts[at] : cuts[at + 1]])) for at in range(3)]
    digests = seen or chain_of(ORIGINAL)
    recorded = anchored_frame(duck_engine(), [(at, digests[at]) for at in seen_at])
    frame = recorded.beside("links", (("position", LONG), ("payload", BYTES)), rows)
    return anchor_findings(frame, recorded, list(others), len(links) - 1, log_ends=log_ends)


def test_a_log_as_it_was_agrees_with_every_anchor():
    """The proof counts positions and anchors by source, and names the highest."""
    others = [Anchor(15, chain_of(ORIGINAL)[15], CHECKPOINT)]
    proof, evidence, unproven = findings(ORIGINAL, [2, 9, 13], others=others)
    assert (evidence, unproven) == ([], [])
    assert (proof.anchors, proof.agreeing, proof.proven_until) == (4, 4, 15)
    assert proof.counts == {"checkpoint": 1, "outcomes": 3}
    assert proof.told() == (
        "chain of 20 positions agrees with 4 anchors (1 checkpoint, 3 outcomes); "
        "none lies above position 15"
    )


@pytest.mark.parametrize("change", [altered, left_out, put_in, swapped])
@pytest.mark.parametrize(
    ("seen_at", "first", "last"),
    [((3, 8, 12, 16), 9, 12), ((3, 9, 10, 16), 10, 10), ((12, 16), 0, 12)],
)
def test_the_first_position_that_differs_lies_between_the_anchors_around_it(
    change, seen_at, first, last
):
    """Position 10 was tampered with: it is bounded by anchors, and no closer than they are."""
    proof, (found,), _ = findings(change(ORIGINAL, 10), seen_at)
    assert (proof.differs_from, proof.differs_to) == (first, last)
    assert (found.kind, found.source, found.position) == ("altered operations", "chain", first)
    bounds = f"is one of {first} to {last}" if first < last else f"position {last} is the first"
    assert bounds in found.summary
    assert proof.proven_until == first - 1


def test_a_change_above_the_highest_anchor_is_not_seen_and_not_said_to_be_proven():
    """Where no anchor reaches, the proof says so."""
    proof, evidence, _ = findings(altered(ORIGINAL, 17), [3, 8])
    assert evidence == []
    assert "none lies above position 8" in proof.told()


def test_an_altered_anchor_below_one_that_agrees_does_not_accuse_the_log():
    """An anchor that agrees proves all below it; the one that does not contradicts it."""
    digests = [*chain_of(ORIGINAL)]
    digests[5] = b"x" * 32
    proof, (found,), _ = findings(ORIGINAL, [3, 5, 9], seen=digests)
    assert (found.kind, found.position) == ("digest mismatch", 5)
    assert "contradict each other" in found.summary
    assert (proof.differs_from, proof.differs_to, proof.proven_until) == (None, None, 9)


def test_two_anchors_of_one_position_that_differ_contradict_each_other():
    """As after a log was changed, its checkpoints discarded, and everything folded again."""
    changed = altered(ORIGINAL, 10)
    others = [Anchor(12, chain_of(ORIGINAL)[12])]
    _, (found,), _ = findings(changed, [12], others=others, seen=chain_of(changed))
    assert (found.kind, found.position) == ("digest mismatch", 12)
    assert "the anchor that was given" in found.summary


def test_an_anchor_above_what_was_audited_is_unproven():
    """An audit of the past does not hold what came later against the log."""
    others = [Anchor(15, chain_of(ORIGINAL)[15])]
    _, evidence, unproven = findings(ORIGINAL[:12], [3], others=others, log_ends=False)
    assert evidence == []
    assert unproven == ["the anchor at position 15 was not compared: the audit reached 11"]


def test_a_log_without_anchors_is_not_said_to_agree():
    """Chunks of other writers may tell no chain."""
    proof, evidence, _ = findings(ORIGINAL, [])
    assert evidence == []
    assert proof.told() == "chain of 20 positions: there is no anchor to compare it with"


def test_an_anchor_is_read_as_it_is_printed():
    """With or without the queue manager's name; anything else is refused with its text."""
    digest = bytes(range(32))
    assert parse_anchor(f"12:{digest.hex()}") == Anchor(12, digest)
    assert parse_anchor(f" QM1@12:{digest.hex().upper()} ") == Anchor(12, digest)
    for text in ("", "12", f"-1:{digest.hex()}", f"12:{digest.hex()[1:]}", f"12:{'g' * 64}"):
        with pytest.raises(AnchorInvalidError, match="ledgermq chain show"):
            parse_anchor(text)
