"""Records as messages, without Kafka: what cannot be read of one is told, and goes aside."""

import pytest

from ledgermq.relay.records import RecordInvalidError, headers_of


class Unnamed:
    """A record with a header whose name is no UTF-8, as librdkafka's binding gives it out."""

    def headers(self):
        """Fails as the binding does."""
        raise SystemError("returned a result with an exception set")

    def set_headers(self, headers):
        """What it gives out from then on does not matter here."""

    def topic(self):
        """Where it is."""
        return "orders"

    def partition(self):
        """Where it is there."""
        return 2

    def offset(self):
        """Its position."""
        return 7


def test_a_header_whose_name_is_no_text_makes_a_record_invalid():
    """It says where the record is; nothing of it is passed over in silence."""
    with pytest.raises(RecordInvalidError, match="orders-2@7"):
        headers_of(Unnamed())
