"""The main program that `spark-submit` starts: `job.py audit|rebuild|tables …`.

It lies in the artifact, beside the packages it needs.
"""

import sys
from importlib import import_module
from pathlib import Path

JOBS = ("audit", "rebuild", "tables")


def main(arguments: list[str]) -> int:
    """Run the job of that name; returns its exit code."""
    if not arguments or arguments[0] not in JOBS:
        if arguments and arguments[0] not in ("-h", "--help"):
            print(f"error: there is no job {arguments[0]!r}", file=sys.stderr)
        print(f"usage: spark-submit … job.py {{{','.join(JOBS)}}} [--help]", file=sys.stderr)
        return 2
    sys.path.insert(0, str(Path(__file__).resolve().parent / "site-packages"))
    sys.argv[0] = f"job.py {arguments[0]}"
    code: int = import_module(f"ledgermq_spark.jobs.{arguments[0]}").main(arguments[1:])
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
