"""What a queue holds of its groups, asked of the worker as administration asks it."""

from typing import Any

import ledgermq


def groups_of(connection: ledgermq.Connection, queue: str) -> list[dict[str, Any]]:
    """Return the groups of a queue by group id."""
    answer = connection._running.questions.ask("GROUPS", queue=queue.partition(":")[2])
    return answer.document["groups"]


def only_group(connection: ledgermq.Connection, queue: str) -> dict[str, Any]:
    """Return the one group of a queue."""
    (group,) = groups_of(connection, queue)
    return group


def members_of(
    connection: ledgermq.Connection, queue: str, group_id: bytes
) -> list[dict[str, Any]]:
    """Return the members of a group in logical order."""
    answer = connection._running.questions.ask(
        "GROUP", queue=queue.partition(":")[2], group_id=group_id
    )
    return answer.document["members"]
