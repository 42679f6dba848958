"""Brokers of tests that begin with the storage which the first one of their process had prepared.

Kafka prepares it by a program of its own: a fifth of what a broker that lives for seconds computes.
Of a broker there is in it but the id of its cluster, in a text.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from ledgermq.embedded import EmbeddedBroker
from ledgermq.embedded.directory import BrokerRecord

PROPERTIES = "meta.properties"
# As each broker prepares its own.
PREPARE = EmbeddedBroker._format


@contextmanager
def storage_prepared_once(directory: Path) -> Iterator[None]:
    """Keeps in a directory what the first broker has prepared, and gives it to all that follow."""
    kept = directory / "storage"

    def take(self: EmbeddedBroker, record: BrokerRecord, command: list[str]) -> None:
        if not kept.exists():
            PREPARE(self, record, command)
            shutil.copytree(self.files.data, directory / "begun")
            (directory / "begun").rename(kept)
            return
        self.files.remove_data()
        shutil.copytree(kept, self.files.data)
        properties = self.files.data / PROPERTIES
        text = properties.read_text(encoding="ascii")
        text, count = re.subn(r"(?m)^cluster\.id=.*$", f"cluster.id={record.cluster_id}", text)
        assert count == 1, text
        properties.write_text(text, encoding="ascii")

    with patch.object(EmbeddedBroker, "_format", take):
        yield
