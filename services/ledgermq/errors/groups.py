"""Errors about groups, segments and logical order (PROTOCOL.md §13); see `ledgermq.errors`."""

from __future__ import annotations

from ledgermq.errors.base import IllegalStateError, InvalidDestinationError, LedgerMQError


class GroupClashError(LedgerMQError):
    """Messages already in the queue rule out this position in the group (PROTOCOL.md §13)."""

    code = "group-clash"


class InvalidGroupError(LedgerMQError, ValueError):
    """The group id, number, segment offset or flags are not valid for any message (GRP-39, 40)."""

    code = "group-invalid"


class GroupNotAllowedError(InvalidDestinationError):
    """A message of a group, or a segment, was put to a topic (GRP-45)."""

    code = "group-not-allowed"


class GroupNotFoundError(LedgerMQError, LookupError):
    """The queue holds nothing of the group."""

    code = "group-unknown"


class IncompleteGroupError(IllegalStateError):
    """In logical order, a message was put outside the group that is still open (GRP-41)."""

    code = "incomplete-group"


class IncompleteMessageError(IllegalStateError):
    """In logical order, something other than the open message's next segment was put (GRP-42)."""

    code = "incomplete-message"


class InconsistentUnitOfWorkError(IllegalStateError):
    """In logical order, a group was put partly in units of work and partly outside (GRP-43)."""

    code = "unit-of-work-inconsistent"


class InconsistentBrowseError(IllegalStateError):
    """A browse went on in another order than it began with (GRP-07, GRP-08)."""

    code = "inconsistent-browse"


class MatchOptionsError(LedgerMQError, ValueError):
    """The match options ask for another message than the next in logical order (GRP-44)."""

    code = "match-options-invalid"


class GetOptionsError(LedgerMQError, ValueError):
    """Options of a get are out of range, or contradict each other."""

    code = "options-invalid"
