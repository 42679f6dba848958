"""A disk that gives back other bytes than it was given, for tests."""

from __future__ import annotations

from pathlib import Path


def flip_bit(broker_directory: Path, topic: str, partition: int, text: bytes) -> None:
    """Changes the last bit of a text where a partition's records hold it first; twice undoes it."""
    found = next((broker_directory / "data" / f"{topic}-{partition}").glob("*.log"))
    with found.open("r+b") as segment:
        place = segment.read().index(text[:-1]) + len(text) - 1
        segment.seek(place)
        [last] = segment.read(1)
        segment.seek(place)
        segment.write(bytes([last ^ 1]))
