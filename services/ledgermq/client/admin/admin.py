"""Administration: one object of its parts, each of which does one kind of work."""

from __future__ import annotations

from ledgermq.client.admin.changes import Changes
from ledgermq.client.admin.manual import ManualOperations
from ledgermq.client.admin.relocation import Relocation
from ledgermq.client.admin.statuses import Statuses


class Admin(Changes, ManualOperations, Relocation, Statuses):
    """`connection.admin`; a queue is named `orders` or `queue:orders`, a topic likewise.

    Changes are operations on the log and return the log position of their outcome. Statuses are
    answers of the worker, true at the position they name; `not_before` asks for one that is true
    at that position or later.
    """
