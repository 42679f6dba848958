"""``python -m ledgermq``: the command line, where its script is not on the path."""

import sys

from ledgermq.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
