"""How a session settles what it gets."""

from __future__ import annotations

from enum import StrEnum


class AckMode(StrEnum):
    """How a session settles what it gets; `connection.session` takes the names as text too.

    AUTO: a message is acknowledged once `receive` has returned it, the iteration has yielded it, or
    the listener has returned (SES-05). The acknowledgement is written with those of its neighbours:
    up to 10 ms after the message was returned if a call waits for the next one, within a few tenths
    of a second if none does, and in any case before the session closes. After a normal close
    nothing that was handed over comes back; after a crash the last messages may, marked as
    redelivered.
    DUPS_OK: as AUTO, but acknowledgements gather for up to a second, which costs the queue manager
    less; after a crash more messages may come again (SES-08).
    CLIENT: `message.acknowledge()` or `session.acknowledge()` settles everything that the session
    has handed over so far (SES-06).
    INDIVIDUAL: `message.acknowledge()` settles that message alone.
    TRANSACTED: `session.commit()` settles everything handed over and puts everything sent, as one
    (SES-12).
    """

    AUTO = "AUTO"
    DUPS_OK = "DUPS_OK"
    CLIENT = "CLIENT"
    INDIVIDUAL = "INDIVIDUAL"
    TRANSACTED = "TRANSACTED"
