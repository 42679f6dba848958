"""How a session settles what it gets."""

from __future__ import annotations

from enum import StrEnum


class AckMode(StrEnum):
    """How a session settles what it gets.

    AUTO: a message is acknowledged once `receive` has returned it (or the iteration has yielded
    it). The acknowledgement is written with those of its neighbours: up to 10 ms after the message
    was returned if a call waits for the next one, within a few tenths of a second if none does, and
    in any case before the session closes. After a normal close nothing that was handed over comes
    back; after a crash the last messages may, marked as redelivered.
    DUPS_OK: as AUTO, but acknowledgements gather for up to a second, which costs the queue manager
    less; after a crash more messages may come again.
    CLIENT: `message.acknowledge()` or `session.acknowledge()` settles everything that the session
    has handed over so far.
    INDIVIDUAL: `message.acknowledge()` settles that message alone.
    TRANSACTED: `session.commit()` settles everything handed over and puts everything sent, as one.
    """

    AUTO = "AUTO"
    DUPS_OK = "DUPS_OK"
    CLIENT = "CLIENT"
    INDIVIDUAL = "INDIVIDUAL"
    TRANSACTED = "TRANSACTED"
