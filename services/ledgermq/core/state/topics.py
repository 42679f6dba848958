"""What topics have beside messages: who their subscriptions are, publications, bindings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from ledgermq.selector import Selector

# The kind of a shared subscription that has ended while deliveries of it are in flight (SES-43).
ENDED: Final = "ended"


class SubscriptionKey(NamedTuple):
    """Identity of a subscription: `kind` durable, shared, consumer or ended (SES-41, 45, 61).

    Durable ones, shared or not, share their names (SES-60); shared ones that are not durable have
    names apart (SES-61). That of a single consumer is named by its session and number, one that
    has ended while deliveries of it are in flight by its name and creation.
    """

    kind: str
    name: str
    client_id: str


@dataclass(slots=True, eq=False, repr=False)
class Publication:
    """A topic message that some subscription still has: how many, and when it was numbered."""

    enqueued_at: int
    holders: int = 0


@dataclass(slots=True, eq=False, repr=False)
class Binding:
    """What is put to some topics goes on to a destination, as far as its selector wants it."""

    # The pattern of their names, and what it means; None: it is a name.
    topics: str
    names: re.Pattern[str] | None
    destination: str
    selector: Selector | None
    created_position: int
