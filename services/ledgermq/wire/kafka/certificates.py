"""Which brokers Python's TLS trusts, by librdkafka's options.

For clients that use it, and to say what is wrong with a broker's certificate: librdkafka says only
that it could not be verified, and that the authorities may be wrong.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

# What an error of librdkafka begins with, and what it says where a certificate is not trusted.
BROKER: Final = re.compile(r"://\[?([^/\]]+)\]?:(\d+)/")
NOT_VERIFIED: Final = "certificate verify failed"
# The broker has just answered.
TIMEOUT_SECONDS: Final = 2.0


def context_of(**authorities: Any) -> ssl.SSLContext:
    """A context that trusts authorities, which are given as to `ssl`; without any the system's.

    It trusts whom librdkafka trusts, on every Python: from 3.13 on that refuses authorities which
    do not say what their keys are for, as many do not, and takes those in between for roots.
    """
    context = ssl.create_default_context(**authorities)
    context.verify_flags &= ~(ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN)
    return context


def trusting_context(given: Mapping[str, Any]) -> ssl.SSLContext:
    """A context that trusts whom the options trust; OSError, ValueError: its files are wrong."""
    authorities = given.get("ssl.ca.location")
    path = None if authorities == "probe" else authorities
    # With authorities these alone are trusted, without any those of the system.
    context = context_of(
        cafile=path if path and not Path(path).is_dir() else None,
        capath=path if path and Path(path).is_dir() else None,
        cadata=given.get("ssl.ca.pem"),
    )
    if revoked := given.get("ssl.crl.location"):
        context.load_verify_locations(revoked)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    if str(given.get("ssl.endpoint.identification.algorithm", "https")).lower() == "none":
        context.check_hostname = False
    if str(given.get("enable.ssl.certificate.verification")).lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def why_not_trusted(told: str, given: Mapping[str, Any]) -> str:
    """What is wrong with the certificate that an error of librdkafka is about; empty: not found."""
    found = BROKER.search(told) if NOT_VERIFIED in told else None
    if found is None:
        return ""
    host, port = found[1], int(found[2])
    try:
        context = trusting_context(given)
        with (
            socket.create_connection((host, port), TIMEOUT_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return ""
    except ssl.SSLCertVerificationError as error:
        why = error.verify_message.rstrip(".")
        return f"the certificate that {host}:{port} shows is not trusted: {why}"
    except (OSError, ValueError):
        return ""
