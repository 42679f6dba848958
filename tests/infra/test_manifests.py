"""The manifests for Kubernetes: valid by its schemas, and in keeping with image and stack."""

from __future__ import annotations

import copy
import re

import kubernetes_validate
import pytest
import yaml

from ledgermq.processor.worker.worker import LAST_RESORT_SECONDS
from support.checkout import ROOT

FILE = ROOT / "infra" / "kubernetes" / "workers.yaml"
MANIFESTS = list(yaml.safe_load_all(FILE.read_text(encoding="utf-8")))
# The oldest that is supported, and the newest that the validator knows.
VERSIONS = ("1.33", kubernetes_validate.latest_version())


def deployment() -> dict:
    """The workers."""
    return next(one for one in MANIFESTS if one["kind"] == "Deployment")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda one: one["kind"])
def test_kubernetes_takes_the_manifest(manifest, version):
    """Its schema has every field, of the right kind."""
    kubernetes_validate.validate(manifest, version, strict=True)


def test_what_kubernetes_would_not_take_is_noticed():
    """A field that is misspelled fails the validation."""
    wrong = copy.deepcopy(deployment())
    wrong["spec"]["template"]["spec"]["terminationGracePeriod"] = 30
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_the_deployment_is_that_of_the_image_and_the_compose_file():
    """User, port and variables are those of the image; time to drain is left."""
    spec = deployment()["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    image = (ROOT / "infra" / "docker" / "Dockerfile").read_text(encoding="utf-8")
    assert f"USER {spec['securityContext']['runAsUser']}:" in image
    assert f"LEDGERMQ_WEB_PORT={container['ports'][0]['containerPort']}" in image
    assert spec["terminationGracePeriodSeconds"] > LAST_RESORT_SECONDS
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    assert container["image"] == re.sub(
        r"\$\{\w+:-(\w+)\}", r"\1", compose["services"]["worker-1"]["image"]
    )
    labels = deployment()["spec"]["selector"]["matchLabels"]
    assert labels == deployment()["spec"]["template"]["metadata"]["labels"]
    for manifest in MANIFESTS:
        if manifest["kind"] == "PodDisruptionBudget":
            assert manifest["spec"]["selector"]["matchLabels"] == labels


def test_variables_are_settings_of_workers():
    """What the config map sets is a setting."""
    from dataclasses import fields

    from ledgermq.processor.worker.settings import WorkerSettings

    known = {f"LEDGERMQ_{field.name.upper()}" for field in fields(WorkerSettings)}
    config = next(one for one in MANIFESTS if one["kind"] == "ConfigMap")
    assert set(config["data"]) <= known
