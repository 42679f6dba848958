"""Where a worker serves metrics and health: a port that can be listened on, or one sentence."""

import socket

import pytest

from ledgermq.processor.worker.web_address import WebAddressError, in_address, usable_port


def test_port_0_is_any_free_one():
    """Somebody else can take it: it is only looked for."""
    with socket.socket() as other:
        port = usable_port("127.0.0.1", 0)
        other.bind(("127.0.0.1", port))


def test_below_0_there_is_no_port():
    """The worker serves nothing then."""
    assert usable_port("127.0.0.1", -1) is None


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("192.0.2.1", "Cannot assign requested address"),
        ("no.such.host.invalid", "not known|name resolution"),
        ("a" * 70, "label"),
    ],
)
def test_a_host_that_is_not_of_this_machine_is_named_with_what_to_do(host, why):
    """Of another machine, unknown, and none at all: each says why, and what to set."""
    told = f"health, port 0 of '{host}', .*({why}).*give another --web-port or LEDGERMQ_WEB_H"
    with pytest.raises(WebAddressError, match=told):
        usable_port(host, 0)


def test_a_port_that_somebody_listens_on_is_refused():
    """As the web server would find out later."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(WebAddressError, match="already in use"):
            usable_port("127.0.0.1", taken.getsockname()[1])


def test_an_address_of_ipv6_stands_in_brackets():
    """Else its colons would begin a port."""
    assert in_address("::1") == "[::1]"
    assert in_address("127.0.0.1") == "127.0.0.1"
