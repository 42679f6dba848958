"""Addresses of queue managers: `kafka://HOST[:PORT][,...][/NAME]`."""

from __future__ import annotations

import re
from typing import Final

from ledgermq.digits import is_whole
from ledgermq.errors import LedgerMQError
from ledgermq.errors.shown import shown
from ledgermq.protocol.limits import is_name

QUEUE_MANAGER_DEFAULT: Final = "QM1"
SCHEME: Final = "kafka://"
KAFKA_PORT_DEFAULT: Final = 9092
IN_BRACKETS: Final = re.compile(r"\[[0-9A-Fa-f:.]+(%[A-Za-z0-9._-]+)?\]")
NO_HOST: Final = frozenset(" ;:\"'[]{}()")


class AddressError(LedgerMQError, ValueError):
    """The address, or a setting of `connect`, cannot be used."""

    code = "setting-invalid"


def parse_address(address: str) -> tuple[str, str]:
    """Servers and queue manager of `kafka://HOST[:PORT][,...][/NAME]`; else AddressError."""
    form = "kafka://HOST:PORT[,HOST:PORT...]/QUEUE-MANAGER"
    if not isinstance(address, str):
        raise AddressError(f"address {shown(address)} is no text: it must be as in {form}")
    if "@" in address:
        # What stands before it may be a secret, and is not shown.
        raise AddressError(
            f"an address has no user and no password, as in {form}: they are options of Kafka's "
            "clients, sasl.username and sasl.password, in LEDGERMQ_KAFKA_... of the environment "
            "or in connect(kafka=...)"
        )
    if not address.startswith(SCHEME):
        raise AddressError(f"address {shown(address)} must begin with {SCHEME}, as in {form}")
    hosts, _, path = address.removeprefix(SCHEME).partition("/")
    queue_manager = path or QUEUE_MANAGER_DEFAULT
    if not is_name(queue_manager):
        raise AddressError(
            f"{shown(queue_manager)} in address {shown(address)} is no queue manager name: "
            "1 to 128 characters of A-Z a-z 0-9 . _ / % -"
        )
    servers = [_with_port(host.strip(), address) for host in hosts.split(",") if host.strip()]
    if not servers:
        raise AddressError(f"address {shown(address)} names no host, as in {form}")
    return ",".join(servers), queue_manager


def parse_servers(bootstrap: str, option: str = "--bootstrap") -> str:
    """Servers of `HOST[:PORT][,...]`, each with a port; else AddressError, naming the option."""
    # Of Kafka's clients that of Spark would miss a port; a port that is none becomes another one.
    if "/" in bootstrap and "@" not in bootstrap:
        hint = "; --queue-manager names the queue manager" if option == "--bootstrap" else ""
        raise AddressError(
            f"{option} {shown(bootstrap)} is no HOST:PORT, as localhost:9092 is{hint}"
        )
    return parse_address(SCHEME + bootstrap)[0]


def _with_port(host: str, address: str) -> str:
    # What is in brackets is an address with colons of its own.
    bracketed = IN_BRACKETS.match(host)
    bare = host[bracketed.end() :] if bracketed else host
    name, colon, port = bare.rpartition(":")
    if not colon and _is_host(bare):
        return f"{host}:{KAFKA_PORT_DEFAULT}"
    if (
        not is_whole(port)
        or not 0 < int(port) < 65536
        or (not name and not bracketed)
        or not _is_host(name)
    ):
        raise AddressError(
            f"{shown(host)} in address {shown(address)} is no HOST:PORT, as localhost:9092 is"
        )
    return host


def _is_host(name: str) -> bool:
    """Whether resolvers take a name, which raise what is no error of theirs for any other.

    Nor is it several, parted by something else than commas.
    """
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return name.isprintable() and not NO_HOST.intersection(name)


def check_text(what: str, value: str) -> None:
    """Refuses what Kafka's clients, which are written in C, cannot have: all but UTF-8 without NUL.

    They end the process, or read half of it. The value may be a secret, and is not shown.
    """
    try:
        fits = b"\0" not in value.encode()
    except UnicodeEncodeError:
        fits = False
    if not fits:
        raise AddressError(f"{what} is no text: it has NUL or lone surrogates")
