"""What can go wrong around the embedded broker; each text says what to do about it."""

from ledgermq.errors import LedgerMQError

__all__ = [
    "BrokerStartError",
    "DirectoryInUseError",
    "EmbeddedError",
    "ForeignClusterError",
    "JarsUnavailableError",
    "JavaMissingError",
    "JavaTooOldError",
    "PortTakenError",
]


class EmbeddedError(LedgerMQError):
    """The base of all errors around the embedded broker."""

    code = "LMQ-EMBEDDED"


class JavaMissingError(EmbeddedError):
    """No Java was found, neither through JAVA_HOME nor on PATH."""

    code = "LMQ-JAVA-MISSING"


class JavaTooOldError(EmbeddedError):
    """Java was found, but none that is new enough for Kafka and Spark."""

    code = "LMQ-JAVA-TOO-OLD"


class JarsUnavailableError(EmbeddedError):
    """The broker's or the Spark connector's jars are not cached and could not be fetched."""

    code = "LMQ-JARS-UNAVAILABLE"


class BrokerStartError(EmbeddedError):
    """The broker process ended, or did not answer in time; the text ends with its log's tail."""

    code = "LMQ-BROKER-START"


class PortTakenError(EmbeddedError):
    """The port that was asked for is used by another process."""

    code = "LMQ-PORT-TAKEN"


class DirectoryInUseError(EmbeddedError):
    """Another live broker works in this directory."""

    code = "LMQ-DIRECTORY-IN-USE"


class ForeignClusterError(EmbeddedError):
    """The directory holds something other than the data of this embedded broker's cluster."""

    code = "LMQ-FOREIGN-CLUSTER"
