"""Builds stand-ins of the base images under their own tags, where no image can be pulled.

Each has the programs of the image that it stands in for, from Debian's packages and from Maven
Central, in the same places and with the same entry, so that docker-compose.yml and the Dockerfile
are tried as they are. They are for trying on this machine; nobody should run a site on them.

    sudo .venv/bin/python infra/docker/stand_ins.py [NAME …]

An image that is there already is left alone. It needs `debootstrap` and a Docker engine; pip's
settings and the certificates of this machine go into the images, and nowhere else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from ledgermq.embedded import broker_jars
from ledgermq.embedded.jars import cache_directory

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DEBIAN = "ledgermq-stand-in/debian"
SUITE = "bookworm"
PYTHON = "python:3.11-slim-bookworm"
CERTIFICATES = Path("usr/local/share/ca-certificates")


def main(names: list[str]) -> None:
    """Build those that are named, else all, and the root file system below them."""
    wanted = {
        "python": PYTHON,
        **{name: image_of(name) for name in ("kafka", "prometheus", "schema-registry")},
    }
    unknown = sorted(set(names) - set(wanted))
    if unknown:
        sys.exit(f"there is no stand-in {unknown[0]!r}; there are: {', '.join(wanted)}")
    missing = {name: tag for name, tag in wanted.items() if not is_there(tag)}
    missing = {name: tag for name, tag in missing.items() if not names or name in names}
    if missing and not is_there(DEBIAN):
        build_debian()
    for name, tag in missing.items():
        print(f"building a stand-in of {tag}", flush=True)
        build(name, tag)


def image_of(service: str) -> str:
    """The image of a service of docker-compose.yml."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    image: str = compose["services"][service]["image"]
    return image


def is_there(tag: str) -> bool:
    """Whether the engine has an image."""
    asked = subprocess.run(["docker", "image", "inspect", tag], capture_output=True, check=False)
    return asked.returncode == 0


def build_debian() -> None:
    """A root file system by debootstrap, that trusts whom this machine trusts."""
    print(f"building a root file system of Debian {SUITE}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "root"
        bootstrap = ["debootstrap", "--variant=minbase", "--include=ca-certificates", SUITE]
        subprocess.run([*bootstrap, str(root)], check=True, stdout=subprocess.DEVNULL)
        for certificate in sorted((Path("/") / CERTIFICATES).glob("*.crt")):
            shutil.copy(certificate, root / CERTIFICATES)
        subprocess.run(["chroot", str(root), "update-ca-certificates"], check=True)
        packed = Path(scratch) / "root.tar"
        subprocess.run(["tar", "-C", str(root), "-cf", str(packed), "."], check=True)
        found = {name: text for name, text in os.environ.items() if name.startswith("PIP_")}
        found.pop("PIP_FIND_LINKS", None)
        changes = [f"--change=ENV {name}={text}" for name, text in found.items()]
        subprocess.run(["docker", "import", *changes, str(packed), DEBIAN], check=True)


def build(name: str, tag: str) -> None:
    """One stand-in, from its Dockerfile and what belongs beside it."""
    with tempfile.TemporaryDirectory() as scratch:
        context = Path(scratch) / "context"
        beside = HERE / "stand_ins" / name
        shutil.copytree(beside, context) if beside.is_dir() else context.mkdir()
        if name == "kafka":
            (context / "jars").mkdir()
            for jar in broker_jars():
                shutil.copy(jar, context / "jars")
        if name == "schema-registry":
            server = cache_directory() / f"apicurio-registry-{tag.partition(':')[2]}"
            if not server.is_dir():
                sys.exit(f"{server} is not there: the tests of the schema registry fetch it")
            shutil.copytree(server, context / "server")
        file = HERE / "stand_ins" / f"{name}.Dockerfile"
        command = ["docker", "build", "--quiet", "--tag", tag, "--file", str(file), str(context)]
        subprocess.run(command, check=True, env=os.environ | {"DOCKER_BUILDKIT": "0"})


if __name__ == "__main__":
    main(sys.argv[1:])
