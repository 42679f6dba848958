"""The command line: the script `ledgermq`, and ``python -m ledgermq`` where it is not found."""

import sys

from ledgermq.cli.printing.exits import USAGE


def main() -> int:
    """Run the command line; the bare install is the client, and says what is missing."""
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
