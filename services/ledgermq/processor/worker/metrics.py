"""Metrics: what a worker shows of itself, in the text format that Prometheus reads."""

from __future__ import annotations

import time
from collections.abc import Iterable

from ledgermq.processor.owner.owner import Owner

Sample = tuple[dict[str, str], float]

HELP = {
    "ledgermq_projection_lag_records": "Operations on the log that are not folded yet.",
    "ledgermq_projection_position": "Last log position folded.",
    "ledgermq_log_time_ahead_seconds": "How far log time is ahead of the log's clock.",
    "ledgermq_operations_folded_total": "Operations folded by this process.",
    "ledgermq_outcomes_written_total": "Outcomes handed to the lanes by this process.",
    "ledgermq_outcomes_unacknowledged_bytes": "Outcomes that the lanes have not acknowledged.",
    "ledgermq_projection_rejected_events_total": "Operations refused by this process, by reason.",
    "ledgermq_bodies_read_back_total": "Bodies read back from the log by this process.",
    "ledgermq_checkpoint_position": "Log position of the newest durable checkpoint.",
    "ledgermq_checkpoint_age_seconds": "Time since a checkpoint was made or loaded, or the start.",
    "ledgermq_questions_answered_total": "Questions answered by this process.",
    "ledgermq_worker_entries_total": "Entries that this worker wrote on the ledger.",
}


def metrics_text(owners: Iterable[Owner], unsent_bytes: int) -> str:
    samples: dict[str, list[Sample]] = {name: [] for name in HELP}
    samples["ledgermq_outcomes_unacknowledged_bytes"].append(({}, unsent_bytes))
    for owner in owners:
        _of_owner(owner, samples)
    lines: list[str] = []
    for name, found in samples.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# HELP {name} {HELP[name]}", f"# TYPE {name} {kind}"]
        for labels, value in found:
            pairs = ",".join(f'{label}="{text}"' for label, text in labels.items())
            lines.append(f"{name}{{{pairs}}} {value:g}" if pairs else f"{name} {value:g}")
    return "\n".join(lines) + "\n"


def _of_owner(owner: Owner, samples: dict[str, list[Sample]]) -> None:
    label = {"queue_manager": owner.claim.queue_manager}

    def put(name: str, value: float, **more: str) -> None:
        samples[f"ledgermq_{name}"].append((label | more, value))

    folder = owner.folder
    if folder is not None:
        position = folder.state.position
        end = owner.end_offset
        put("projection_lag_records", max(0, end - position - 1) if end is not None else 0)
        put("projection_position", position)
        put("log_time_ahead_seconds", owner.time.ahead_seconds(folder.state))
        put("operations_folded_total", folder.operations)
    put("outcomes_written_total", owner.lanes.outcomes_written)
    for reason, count in sorted(owner.lanes.refused.items()):
        put("projection_rejected_events_total", count, reason=reason)
    put("bodies_read_back_total", owner.bodies.read_back)
    put("questions_answered_total", owner.answers.answered)
    put("worker_entries_total", owner.time.written)
    if owner.checkpoints is not None:
        checkpointer = owner.checkpoints.checkpointer
        if checkpointer.durable is not None:
            put("checkpoint_position", checkpointer.durable["position"])
        put("checkpoint_age_seconds", time.monotonic() - checkpointer.durable_at)
