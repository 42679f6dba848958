"""What can go wrong around the embedded broker; each text says what to do about it."""

from ledgermq.errors import LedgerMQError


class EmbeddedError(LedgerMQError):
    """The base of all errors around the embedded broker."""

    code = "embedded"


class JavaMissingError(EmbeddedError):
    """No Java was found, neither through JAVA_HOME nor on PATH."""

    code = "java-missing"


class JavaTooOldError(EmbeddedError):
    """Java was found, but none that is new enough for Kafka and Spark."""

    code = "java-too-old"


class JarsUnavailableError(EmbeddedError):
    """The broker's or the Spark connector's jars are not cached and could not be fetched."""

    code = "jars-unavailable"


class BrokerStartError(EmbeddedError):
    """The broker process ended, or did not answer in time; the text ends with what its log says."""

    code = "broker-start"


class PortTakenError(EmbeddedError):
    """The port that was asked for is used by another process."""

    code = "port-taken"


class DirectoryInUseError(EmbeddedError):
    """Another live broker works in this directory."""

    code = "directory-in-use"


class ForeignClusterError(EmbeddedError):
    """The directory holds something other than the data of this embedded broker's cluster."""

    code = "foreign-cluster"
