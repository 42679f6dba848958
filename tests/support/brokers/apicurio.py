"""A real schema registry for tests: Apicurio 2.6 from Maven Central, in memory, on loopback."""

from __future__ import annotations

import fcntl
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from pathlib import Path
from typing import Final, Self

from ledgermq.embedded.jars import _ivy_jar, _ivy_settings, cache_directory
from ledgermq.embedded.java import find_java

VERSION: Final = "2.6.13.Final"
FETCH_SECONDS: Final = 900
START_SECONDS: Final = 240.0
# Becomes the command behind it, which is then killed when this process ends however it ends.
DYING_WITH_US: Final = (
    "import ctypes, os, signal, sys; ctypes.CDLL(None).prctl(1, signal.SIGKILL); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)
IVY_MODULE: Final = f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
<info organisation="ledgermq" module="tests"/>
<dependencies>
<dependency org="io.apicurio" name="apicurio-registry-app" rev="{VERSION}" transitive="false">
<artifact name="apicurio-registry-app" type="zip" ext="zip" m:classifier="all"/>
</dependency>
</dependencies>
</ivy-module>
"""


def _distribution() -> Path:
    """The folder of the server, fetched (142 MB) if the cache lacks it; whole by one rename."""
    found = cache_directory() / f"apicurio-registry-{VERSION}"
    found.parent.mkdir(parents=True, exist_ok=True)
    with (found.parent / "apicurio.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.is_dir():
            _fetch(found)
    return found


def _fetch(found: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".apicurio.", dir=found.parent) as name:
        scratch = Path(name)
        (scratch / "ivy.xml").write_text(IVY_MODULE, encoding="utf-8")
        command = [str(find_java()), "-jar", str(_ivy_jar()), "-settings", str(_ivy_settings())]
        command += ["-cache", str(scratch / "ivy"), "-ivy", str(scratch / "ivy.xml")]
        command += ["-confs", "default", "-types", "zip"]
        command += ["-retrieve", f"{scratch}/[artifact].[ext]"]
        told = subprocess.run(
            command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
        )
        archive = scratch / "apicurio-registry-app.zip"
        assert archive.is_file(), f"Apicurio was not fetched:\n{told.stdout[-2000:]}"
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(scratch / "whole")
        (scratch / "whole").rename(found)


class Apicurio:
    """A registry that is started, stopped and started again; what it held is then gone."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """What LEDGERMQ_SCHEMA_REGISTRY is set to."""
        return f"http://127.0.0.1:{self.port}/apis/ccompat/v7"

    def start(self) -> Self:
        """Starts the server and waits until it answers."""
        server = next(_distribution().glob("*-runner.jar"))
        command = [str(find_java()), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        command += ["-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={self.port}"]
        log_path = self._directory / "apicurio.log"
        with log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", DYING_WITH_US, *command, "-jar", str(server)],
                cwd=self._directory,
                stdout=log,
                stderr=log,
            )
        limit = time.monotonic() + START_SECONDS
        while not self._answers():
            assert self._process.poll() is None, log_path.read_text(errors="replace")[-2000:]
            assert time.monotonic() < limit, "Apicurio did not start in time"
            time.sleep(0.2)
        return self

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=5):
                return True
        except OSError:
            return False

    def stop(self) -> None:
        """Ends the server at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
