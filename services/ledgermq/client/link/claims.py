"""Finding a queue manager in the registry."""

from __future__ import annotations

from ledgermq.client.settings import ConnectionSettings
from ledgermq.errors import LogError, QueueManagerNotFoundError
from ledgermq.wire.topics.registry import Claim, RegistryError, list_queue_managers


def find_claim(settings: ConnectionSettings, timeout_seconds: float) -> Claim:
    """The claim of the queue manager that the settings name; nothing is claimed here.

    Raises:
        LogError: the registry cannot be read.
        QueueManagerNotFoundError: nobody claimed that name.
    """
    try:
        claims = list_queue_managers(
            settings.bootstrap, settings.topics, timeout_seconds=timeout_seconds
        )
    except RegistryError as error:
        raise LogError(str(error)) from error
    for claim in claims:
        if claim.queue_manager == settings.queue_manager:
            return claim
    known = ", ".join(one.queue_manager for one in claims) or "none"
    raise QueueManagerNotFoundError(
        f"there is no queue manager {settings.queue_manager} at {settings.bootstrap} "
        f"(known: {known}): check the name, or start a worker for it, which claims it"
    )
