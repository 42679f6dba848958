"""`python -m ledgermq.processor`: a worker by its LEDGERMQ_* variables, as supervisors start it."""

from __future__ import annotations

import gc
import sys

from ledgermq.garbage import SELDOM


def main() -> int:
    # For all of its life; looking for cycles in what it imports took an eighth of its start.
    gc.set_threshold(*SELDOM)
    from ledgermq.processor.worker.exit_codes import EXIT_USAGE
    from ledgermq.processor.worker.logs import set_up_log
    from ledgermq.processor.worker.process import die_with_parent
    from ledgermq.processor.worker.settings import SettingsError, WorkerSettings
    from ledgermq.processor.worker.start import run_worker
    from ledgermq.wire.topics.address import AddressError

    die_with_parent()
    try:
        settings = WorkerSettings.from_environment()
        set_up_log(settings.log_level, settings.log_format, settings.worker_name)
        return run_worker(settings)
    except (AddressError, SettingsError) as error:
        print(f"ledgermq worker: {error}", file=sys.stderr)
        return EXIT_USAGE


if __name__ == "__main__":
    sys.exit(main())
