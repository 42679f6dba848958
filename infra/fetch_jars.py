"""Fetches the jars of the embedded broker and those that Spark needs into the cache."""

import sys

from ledgermq.embedded import EmbeddedError, broker_jars, delta_jars, spark_connector_jars


def main(arguments: list[str]) -> None:
    """Fetch what is not cached, with `--spark` for Spark only; else end with a text for people."""
    try:
        if arguments != ["--spark"]:
            broker_jars()
        spark_connector_jars()
        delta_jars()
    except EmbeddedError as error:
        sys.exit(f"ledgermq: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
