"""Fetches the jars of the embedded broker and those that Spark needs into the cache."""

import sys

from ledgermq.embedded import EmbeddedError, broker_jars, delta_jars, spark_connector_jars


def main() -> None:
    """Fetch what is not cached; end with a text for people if that fails."""
    try:
        broker_jars()
        spark_connector_jars()
        delta_jars()
    except EmbeddedError as error:
        sys.exit(f"ledgermq: {error}")


if __name__ == "__main__":
    main()
