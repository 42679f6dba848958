"""Class-data archives: used where they were made, and nobody misses them where not."""

import os
from pathlib import Path

import pytest

from ledgermq.embedded.class_archive import archive_options, class_archive, outdated_archives
from ledgermq.embedded.jars import BROKER, broker_jars
from ledgermq.embedded.java import find_java


@pytest.fixture
def java(tmp_path, monkeypatch):
    """A Java installation, by what tells it from another, and an empty cache."""
    monkeypatch.setenv("LEDGERMQ_CACHE_DIR", str(tmp_path / "cache"))
    for part in ("bin/java", "lib/modules"):
        (tmp_path / part).parent.mkdir()
        (tmp_path / part).touch()
    return tmp_path / "bin/java"


def test_an_archive_is_used_once_it_was_made(java):
    """Naming one that is not there would cost Java its own as well."""
    assert archive_options("kafka-1", java, []) == []
    assert archive_options("kafka-1", None, []) == []
    archive = class_archive("kafka-1", java, [])
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert archive_options("kafka-1", java, []) == [f"-XX:SharedArchiveFile={archive}"]
    assert archive_options("kafka-2", java, []) == []


def test_another_java_has_an_archive_of_its_own(java):
    """An update of Java in its place counts as another; links to one Java do not."""
    made = class_archive("kafka-1", java, [])
    link = java.parents[1] / "link"
    link.symlink_to(java)
    assert class_archive("kafka-1", link, []) == made
    (java.parents[1] / "lib/modules").write_text("another", encoding="utf-8")
    assert class_archive("kafka-1", java, []) != made
    assert class_archive("kafka-1", Path("java"), []) != made


def test_jars_that_were_written_again_have_an_archive_of_their_own(java, tmp_path):
    """Java takes none that was made of other files, and says so on the terminal."""
    jar = tmp_path / "one.jar"
    jar.write_bytes(b"one")
    os.utime(jar, (1, 1))
    made = class_archive("kafka-1", java, [jar])
    assert class_archive("kafka-1", java, [jar]) == made
    os.utime(jar, (2, 2))
    again = class_archive("kafka-1", java, [jar])
    assert again != made
    other = class_archive("kafka-1", java, [])
    made.parent.mkdir(parents=True)
    for one in (made, again, other):
        one.touch()
    assert outdated_archives(again) == [made], "those of other files are somebody else's"


def test_a_broker_maps_the_archive_that_make_setup_made(broker):
    """It is the broker's program that was prepared, and Java takes it."""
    if getattr(broker, "pid", None) is None:
        pytest.skip("somebody else runs the broker")
    if not archive_options(BROKER.name, find_java(), broker_jars()):
        pytest.skip("this Java wrote no archive, as some cannot")
    maps = Path(f"/proc/{broker.pid}/maps").read_text(encoding="utf-8")
    assert "/classes/kafka-" in maps
