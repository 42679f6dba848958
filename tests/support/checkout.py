"""Where things are in the checkout, for tests at any depth."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
SERVICES = ROOT / "services"
SCHEMAS = ROOT / "schemas"
SCRIPTS = ROOT / "tests" / "core" / "scripts"
