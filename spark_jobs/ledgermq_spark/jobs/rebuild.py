"""`python -m ledgermq_spark.jobs.rebuild`: the state of a queue manager at a position or time."""

from __future__ import annotations

import json
import sys

from ledgermq_spark.jobs.arguments import job, parser, where, work_directory
from ledgermq_spark.jobs.run import rebuild_at
from ledgermq_spark.log.durable_files import write_durably


@job
def main(arguments: list[str] | None = None) -> int:
    """Rebuild, print the status of every queue; with --output write them as JSON."""
    options = parser("Rebuild the state of a queue manager from its log.")
    options.add_argument("--from-checkpoint", action="store_true", help="do not start from zero")
    given = options.parse_args(arguments)
    with work_directory(given) as directory:
        rebuilt = rebuild_at(**where(given, directory), from_checkpoint=given.from_checkpoint)
    document = {
        "queue_manager": rebuilt.queue_manager,
        "position": rebuilt.position,
        "time": rebuilt.time,
        "digest": rebuilt.digest,
        "chain": rebuilt.chain.hex(),
        "seconds": round(rebuilt.seconds, 3),
        "queues": rebuilt.statuses,
        "topics": rebuilt.topics,
        "subscriptions": rebuilt.subscriptions,
        "bindings": rebuilt.bindings,
    }
    text = json.dumps(document, indent=2)
    if given.output is not None:
        write_durably(given.output / "rebuild.json", text)
    if given.json:
        print(text)
        return 0
    print(f"{rebuilt.queue_manager}@{rebuilt.position}  digest {rebuilt.digest}")
    for one in rebuilt.statuses:
        print(
            f"{one['name']:40} {one['message_count']:>10,} messages, "
            f"min {one['min_sequence']}, max {one['max_sequence']}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
