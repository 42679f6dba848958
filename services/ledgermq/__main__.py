"""The command line: the script `ledgermq`, and ``python -m ledgermq`` where it is not found."""

import gc
import sys

from ledgermq.cli.printing.exits import USAGE
from ledgermq.garbage import SELDOM


def main() -> int:
    """Run the command line; the bare install is the client, and says what is missing."""
    # What is imported stays: looking for cycles in it took an eighth of a command's start.
    gc.set_threshold(*SELDOM)
    try:
        from ledgermq.cli.main import main as run
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        print(
            "error: the command line needs click, which is not installed: "
            "pip install 'ledgermq[cli]'",
            file=sys.stderr,
        )
        return USAGE
    return run()


if __name__ == "__main__":
    sys.exit(main())
