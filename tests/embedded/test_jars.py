"""Tests that jars are fetched once, whole or not at all; a stand-in plays Java and Ivy."""

import threading
from pathlib import Path

import pytest

from ledgermq.embedded import JarsUnavailableError, jars
from ledgermq.embedded.jars import BROKER, SPARK_CONNECTOR, JarSet, cached_jars

SAMPLE = JarSet(name="sample-1", title="a sample", modules=(("org", "sample", "1"),))

IVY = """#!/bin/sh
[ "$1" = -version ] && { echo 'openjdk version "17"' >&2; exit 0; }
echo run >> "$IVY_RUNS"
for pattern; do :; done
folder="${pattern%/*}"
if [ -e "$IVY_BROKEN" ]; then
    echo half > "$folder/half-1.jar"; echo "module not found: org#sample;1"; exit 1
fi
echo one > "$folder/one-1.jar"
echo two > "$folder/two-1.jar"
"""


class Ivy:
    """The stand-in: counts its runs, and fails while it is broken."""

    def __init__(self, directory: Path) -> None:
        self.runs_file = directory / "runs"
        self.broken_file = directory / "broken"

    @property
    def runs(self) -> int:
        """How often it was started."""
        return len(self.runs_file.read_text().split()) if self.runs_file.exists() else 0


@pytest.fixture
def ivy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ivy:
    """Put the stand-in in Java's place, with an empty cache."""
    java = tmp_path / "home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(IVY, encoding="utf-8")
    java.chmod(0o755)
    stand_in = Ivy(tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IVY_RUNS", str(stand_in.runs_file))
    monkeypatch.setenv("IVY_BROKEN", str(stand_in.broken_file))
    monkeypatch.setenv("LEDGERMQ_CACHE_DIR", str(tmp_path / "cache"))
    return stand_in


def test_jars_are_fetched_once_and_then_found(ivy):
    """The second call needs neither Java nor network."""
    first = jars.fetched_jars(SAMPLE)
    assert [jar.name for jar in first] == ["one-1.jar", "two-1.jar"]
    assert jars.fetched_jars(SAMPLE) == first
    assert ivy.runs == 1


def test_a_failed_fetch_leaves_nothing_and_says_why(ivy):
    """Half of a set is never taken for the whole, and Ivy's own words are shown."""
    ivy.broken_file.touch()
    with pytest.raises(JarsUnavailableError, match="module not found: org#sample;1"):
        jars.fetched_jars(SAMPLE)
    assert cached_jars(SAMPLE) is None
    ivy.broken_file.unlink()
    assert len(jars.fetched_jars(SAMPLE)) == 2


def test_a_damaged_set_is_fetched_again(ivy):
    """A jar that was truncated or deleted is noticed before Java trips over it."""
    first = jars.fetched_jars(SAMPLE)
    first[0].write_bytes(b"")
    assert cached_jars(SAMPLE) is None
    assert jars.fetched_jars(SAMPLE) == first
    assert cached_jars(SAMPLE) == first
    assert ivy.runs == 2


def test_fetches_at_the_same_time_become_one(ivy):
    """Whoever waited for the lock uses what the other fetched."""
    threads = [threading.Thread(target=jars.fetched_jars, args=[SAMPLE]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ivy.runs == 1
    assert cached_jars(SAMPLE) is not None


def test_a_user_without_a_home_is_told_to_name_a_directory(monkeypatch):
    """As in a container whose user is only a number: Python finds no home for it."""

    def home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("LEDGERMQ_CACHE_DIR", raising=False)
    monkeypatch.setattr("pathlib.Path.home", home)
    with pytest.raises(JarsUnavailableError, match=r"no home directory.* set LEDGERMQ_CACHE_DIR"):
        jars.cache_directory()


def test_a_cache_that_cannot_be_written_is_named(monkeypatch, tmp_path, ivy):
    """The text says which directory, and which setting chooses another."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("LEDGERMQ_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(JarsUnavailableError, match="LEDGERMQ_CACHE_DIR"):
        jars.fetched_jars(SAMPLE)
    assert ivy.runs == 0


def test_the_request_names_modules_and_exclusions():
    """What PySpark ships is not fetched a second time."""
    request = jars._ivy_module(SPARK_CONNECTOR)
    assert 'name="spark-sql-kafka-0-10_2.13" rev="4.0.0"' in request
    assert '<exclude org="org.apache.hadoop"/>' in request
    assert '<exclude org="org.apache.spark" module="spark-tags_2.13"/>' in request
    assert "exclude" not in jars._ivy_module(BROKER)


def test_the_resolver_settings_name_no_address():
    """Where jars come from is Ivy's knowledge of Maven Central, or the user's own settings."""
    assert "://" not in jars._ivy_settings().read_text(encoding="utf-8")
