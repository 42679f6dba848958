"""Tests that a usable Java is found, and that people are told what to do when there is none."""

from pathlib import Path

import pytest

from ledgermq.embedded import JavaMissingError, JavaTooOldError
from ledgermq.embedded.java import find_java, java_version


def fake_java(directory: Path, version: str) -> Path:
    """Create a `java` that only says its version, as real ones do on standard error."""
    directory.mkdir(parents=True, exist_ok=True)
    java = directory / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    return java


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Take away every Java of this machine; what the fakes need of it stays."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))


@pytest.mark.parametrize(
    ("text", "version"),
    [("1.8.0_302", 8), ("11.0.2", 11), ("17.0.15", 17), ("21", 21), ("25-ea", 25)],
)
def test_old_and_new_version_texts_are_understood(tmp_path, text, version):
    """Java 8 called itself 1.8; later ones begin with their number."""
    assert java_version(fake_java(tmp_path, text)) == version


def test_a_command_without_a_version_has_none(tmp_path):
    """Something else that is named java is not taken for one."""
    assert java_version(tmp_path / "missing") is None


@pytest.mark.usefixtures("no_java")
def test_missing_java_is_named_with_what_to_do():
    """Without any Java the text says how to get one."""
    with pytest.raises(JavaMissingError, match="apt-get install openjdk-17-jre-headless"):
        find_java()


@pytest.mark.usefixtures("no_java")
def test_old_java_is_named_with_its_place_and_version(monkeypatch, tmp_path):
    """The text says which Java was found where, so that people can mend the right one."""
    old = fake_java(tmp_path / "old", "11.0.2")
    monkeypatch.setenv("PATH", str(old.parent))
    with pytest.raises(JavaTooOldError, match=f"{old} .from PATH. is version 11"):
        find_java()


@pytest.mark.usefixtures("no_java")
def test_java_that_cannot_start_is_told_with_its_own_words(monkeypatch, tmp_path):
    """Where memory is short, another Java would not help."""
    java = fake_java(tmp_path / "path", "17")
    java.write_text("#!/bin/sh\necho 'Could not reserve space for heap'", encoding="utf-8")
    monkeypatch.setenv("PATH", str(java.parent))
    with pytest.raises(JavaTooOldError, match="not say its version but 'Could not reserve space"):
        find_java()


@pytest.mark.usefixtures("no_java")
def test_java_home_comes_before_path(monkeypatch, tmp_path):
    """JAVA_HOME is a choice, PATH a habit."""
    home = fake_java(tmp_path / "home" / "bin", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "path", "21").parent))
    assert find_java() == home


@pytest.mark.usefixtures("no_java")
def test_an_old_java_home_does_not_hide_a_good_java_on_path(monkeypatch, tmp_path):
    """A machine with a good Java is not refused because of a stale variable."""
    fake_java(tmp_path / "home" / "bin", "1.8.0_302")
    good = fake_java(tmp_path / "path", "21.0.3")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(good.parent))
    assert find_java() == good
