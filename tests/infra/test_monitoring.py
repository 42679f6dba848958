"""Alert rules and the dashboard: Prometheus and Grafana take them, and the metrics are there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from itertools import combinations

import pytest
import yaml

from support.checkout import ROOT

RULES = ROOT / "infra" / "prometheus" / "alerts.yml"
DASHBOARD = ROOT / "infra" / "grafana" / "dashboards" / "ledgermq.json"
OURS = re.compile(r"\bledgermq_[a-z_]+\b")
# What a variable of Grafana may stand for where it stands.
VARIABLES = {"$__rate_interval": "1m", "$queue_manager": ".*", "$destination": ".*"}
WIDTH = 24

promtool = pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="there is no promtool (Debian: apt-get install prometheus)",
)


def dashboard() -> dict:
    """The dashboard, as Grafana reads it."""
    return json.loads(DASHBOARD.read_text(encoding="utf-8"))


def expressions() -> dict[str, str]:
    """Every expression of the dashboard, by panel and letter."""
    return {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in dashboard()["panels"]
        for target in panel.get("targets", [])
    }


def checked(*command: object) -> None:
    """Run promtool; what it says against its input is the failure."""
    answer = subprocess.run(
        ["promtool", *map(str, command)], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr


@promtool
def test_rules_fire_when_they_should_and_are_silent_when_all_is_well():
    """`alerts_test.yml` has a short history for each rule: `promtool test rules` plays them."""
    checked("check", "rules", RULES)
    checked("test", "rules", ROOT / "tests" / "infra" / "alerts_test.yml")


@promtool
def test_prometheus_takes_its_configuration():
    """What the stack gives to Prometheus is valid, with the rules it names."""
    checked("check", "config", ROOT / "infra" / "prometheus" / "prometheus.yml")


def test_every_rule_is_played():
    """No rule is without a history in which it fires."""
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"][0]["rules"]
    played = (ROOT / "tests" / "infra" / "alerts_test.yml").read_text(encoding="utf-8")
    assert [one["alert"] for one in rules if one["alert"] not in played] == []


@promtool
def test_every_expression_of_the_dashboard_is_one(tmp_path):
    """Prometheus parses each of them, with something in the place of Grafana's variables."""
    rules = []
    for number, expression in enumerate(expressions().values()):
        for variable, text in VARIABLES.items():
            expression = expression.replace(variable, text)
        rules.append({"record": f"panel:{number}", "expr": expression})
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    checked("check", "rules", file)


def test_rules_and_dashboard_ask_for_metrics_that_workers_have():
    """A metric that no worker shows would leave a panel empty and an alert silent for ever."""
    families = pytest.importorskip("ledgermq.processor.metrics.families").FAMILIES
    there = set()
    for family in families:
        suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}
        there |= {f"ledgermq_{family.name}{end}" for end in suffixes.get(family.kind, [""])}
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"][0]["rules"]
    asked = set(OURS.findall(" ".join(expressions().values())))
    asked |= set(OURS.findall(" ".join(one["expr"] for one in rules)))
    assert asked - there == set()


def test_the_dashboard_is_what_grafana_takes():
    """Panels have ids of their own, lie within the width and upon no other, and ask a variable."""
    panels = dashboard()["panels"]
    ids = [one["id"] for one in panels]
    assert len(ids) == len(set(ids))
    variables = {one["name"] for one in dashboard()["templating"]["list"]}
    for panel in panels:
        place = panel["gridPos"]
        assert 0 <= place["x"] < place["x"] + place["w"] <= WIDTH, panel["title"]
        for target in panel.get("targets", []):
            used = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps(target)))
            assert used <= variables, panel["title"]
    for one, other in combinations((panel["gridPos"] for panel in panels), 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above, (one, other)


def test_every_panel_says_what_is_normal_and_what_to_do():
    """Whoever is woken by an alert finds in the panel what it shows, and a next step."""
    for panel in dashboard()["panels"]:
        if panel["type"] != "row":
            sentences = re.split(r"(?<=[.:]) ", panel["description"])
            assert len(sentences) >= 3, panel["title"]
            assert "normal" in panel["description"].lower(), panel["title"]


def test_grafana_finds_data_source_and_dashboard_where_the_stack_mounts_them():
    """Paths, service and uid of the provisioning are those of docker-compose.yml."""
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    mounts = dict(one.split(":")[:2] for one in compose["services"]["grafana"]["volumes"])
    provisioning = ROOT / "infra" / "grafana" / "provisioning"
    source = yaml.safe_load((provisioning / "datasources" / "prometheus.yml").read_text())
    assert source["datasources"][0]["url"] == "http://prometheus:9090"
    provider = yaml.safe_load((provisioning / "dashboards" / "ledgermq.yml").read_text())
    path = provider["providers"][0]["options"]["path"]
    assert mounts["./infra/grafana/dashboards"] == path
    home = compose["services"]["grafana"]["environment"][
        "GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"
    ]
    assert home == f"{path}/{DASHBOARD.name}"
    for mounted in mounts:
        assert not mounted.startswith(".") or (ROOT / mounted).is_dir()
