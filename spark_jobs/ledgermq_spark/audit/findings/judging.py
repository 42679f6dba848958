"""Which findings are listed: the primary ones, and those others that do not follow from them."""

from __future__ import annotations

from ledgermq_spark.audit.findings.evidence import ANOMALY_KINDS, Evidence


def judge(primary: list[Evidence], secondary: list[Evidence]) -> tuple[list[Evidence], int]:
    """Anomalies to list, and how many further findings merely follow from them.

    A finding of a second opinion follows from a primary one that concerns the same message, place
    or session. Of second opinions that follow from one another only the first is listed.
    """
    order = {kind: at for at, kind in enumerate(ANOMALY_KINDS)}
    listed = sorted(primary, key=lambda one: (order[one.kind], one.position, one.index))
    consequences = 0
    for one in sorted(secondary, key=lambda one: (order[one.kind], one.position, one.index)):
        if any(_follows(one, earlier) for earlier in listed):
            consequences += 1
        else:
            listed.append(one)
    return listed, consequences


def _follows(one: Evidence, earlier: Evidence) -> bool:
    """Whether a finding is explained by an earlier one."""
    if one.source == earlier.source and one.field != earlier.field:
        return False
    if one.message_id and one.message_id in earlier.message_id:
        return True
    if one.session >= 0 and one.session == earlier.session:
        return True
    if one.message_id or one.session >= 0:
        # Another message is passed over, or resident, because one of the same queue is astray.
        return one.source in ("laws", "moves") and bool(one.queue) and one.queue == earlier.queue
    if one.queue:
        return earlier.queue in ("", one.queue)
    return one.position == earlier.position
