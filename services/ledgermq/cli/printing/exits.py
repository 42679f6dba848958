"""Exit codes of the command line, and which error ends in which.

0 done · 1 refused, not confirmed, or the audit found an anomaly · 2 wrong use · 3 broker or worker
not reachable · 4 a check failed · 5 unproven: the outcome of an operation, or the audit's verdict,
is not known.
"""

from __future__ import annotations

from typing import Final

OK: Final = 0
REFUSED: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3
CHECK_FAILED: Final = 4
UNPROVEN: Final = 5
INTERRUPTED: Final = 130

# By name, because client, worker and Spark jobs are imported only where they are used.
_CLASSES: Final = {
    REFUSED: "SchemaRefusedError",
    USAGE: "AddressError DirectoryUnwritableError InvalidSelectorError MessageFormatError "
    "NoQueryError SettingsError SparkSettingError",
    UNREACHABLE: "AccessDeniedError AuthenticationFailedError BrokerUnavailableError "
    "ConnectionClosedError LogUnreachableError RegistryError SchemaRegistryError "
    "TimeoutExceededError",
    UNPROVEN: "OutcomeUnknownError",
}
_BY_CLASS: Final = {name: code for code, names in _CLASSES.items() for name in names.split()}

# What the client itself turns away is a value that cannot be; refusals may be of the same class.
_OF_THE_CLIENT: Final = ("IllegalStateError", "InvalidClientIDError", "InvalidDestinationError")


def exit_code_of(error: BaseException) -> int:
    """The exit code for an error; the most special class that has one decides."""
    if type(error).__name__ in _OF_THE_CLIENT and getattr(error, "position", None) is None:
        return USAGE
    for kind in type(error).__mro__:
        if kind.__name__ in _BY_CLASS:
            return _BY_CLASS[kind.__name__]
    return REFUSED
