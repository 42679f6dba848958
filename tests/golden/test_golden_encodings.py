"""Golden bytes: what each schema of each version encodes to, and that versions read each other.

`tests/golden/vN/` holds for each record its sample data as bytes, and the schemas themselves as
they were released. `make golden-update` rewrites the active version's; a released version's files
never change again, because entries of the ledger live for ever.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
from itertools import product
from pathlib import Path

import pytest

from ledgermq.protocol.limits import PROTOCOL_VERSION
from ledgermq.wire.framing.codec import decode_record, encode_record
from ledgermq.wire.framing.schemas import by_fingerprint, by_name, names
from support.checkout import SCHEMAS
from support.checks.compatibility import problems
from support.checks.samples import VARIANTS, from_json, record_names, sample, to_json

HERE = Path(__file__).parent
ACTIVE = HERE / f"v{PROTOCOL_VERSION}"
VERSIONS = sorted(path.name for path in HERE.glob("v*"))


def update() -> None:
    """Writes the golden files of the active version."""
    shutil.rmtree(ACTIVE, ignore_errors=True)
    (ACTIVE / "schemas").mkdir(parents=True)
    for path in SCHEMAS.glob("*.avsc"):
        shutil.copy(path, ACTIVE / "schemas")
    for name in record_names():
        data = [sample(name, variant) for variant in VARIANTS]
        golden = {
            "full_name": name,
            "fingerprint": by_name(name).fingerprint.hex(),
            "samples": [
                {"hex": encode_record(name, datum).hex(), "datum": to_json(datum)} for datum in data
            ],
        }
        text = json.dumps(golden, indent=1, ensure_ascii=False)
        (ACTIVE / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if os.environ.get("LEDGERMQ_GOLDEN_UPDATE"):
    update()

GOLDEN = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(ACTIVE.glob("*.json"))]


def schemas_in(directory: Path) -> dict:
    """The schemas of a directory by full name."""
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in directory.glob("*.avsc")
    }


def test_every_record_has_golden_bytes():
    """A schema without golden bytes could change unseen."""
    assert [one["full_name"] for one in GOLDEN] == record_names()


@pytest.mark.parametrize("golden", GOLDEN, ids=[one["full_name"] for one in GOLDEN])
def test_sample_data_encode_to_the_golden_bytes_and_back(golden):
    """The same data are the same bytes for ever, and the bytes the same data."""
    for one in golden["samples"]:
        datum, value = from_json(one["datum"]), bytes.fromhex(one["hex"])
        assert encode_record(golden["full_name"], datum) == value
        assert decode_record(value) == (golden["full_name"], datum)
        fitting = by_name(golden["full_name"]).fitting(datum)
        assert value[:10] == b"\xc3\x01" + fitting.fingerprint
        assert fitting.left_out or fitting.fingerprint.hex() == golden["fingerprint"]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_released_schema_is_known_by_its_fingerprint(version):
    """What was ever written can be read: no released record's fingerprint is forgotten."""
    for path in (HERE / version).glob("*.json"):
        golden = json.loads(path.read_text(encoding="utf-8"))
        known = by_fingerprint()[bytes.fromhex(golden["fingerprint"])]
        assert known.full_name == golden["full_name"]
        assert f"v{known.version}" == version


def rabin(text: str) -> bytes:
    """CRC-64-AVRO of a text, as the Avro specification gives it, in little-endian order."""
    empty = 0xC15D213AA4D7A795
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (empty & -(value & 1))
        table.append(value)
    found = empty
    for byte in text.encode():
        found = (found >> 8) ^ table[(found ^ byte) & 0xFF]
    return found.to_bytes(8, "little")


def canonical(schema, schemas, seen) -> str:
    """Parsing canonical form, of the kinds of schema that the protocol uses."""
    if isinstance(schema, list):
        return "[" + ",".join(canonical(one, schemas, seen) for one in schema) + "]"
    if isinstance(schema, str):
        if schema not in schemas or schema in seen:
            return f'"{schema}"'
        return canonical(schemas[schema], schemas, seen)
    kind = schema["type"]
    if kind == "array":
        return '{"type":"array","items":' + canonical(schema["items"], schemas, seen) + "}"
    if kind == "map":
        return '{"type":"map","values":' + canonical(schema["values"], schemas, seen) + "}"
    if "name" not in schema:
        return canonical(kind, schemas, seen)
    name = f"{schema['namespace']}.{schema['name']}"
    seen.add(name)
    start = f'{{"name":"{name}","type":"{kind}",'
    if kind == "enum":
        return start + '"symbols":[' + ",".join(f'"{one}"' for one in schema["symbols"]) + "]}"
    if kind == "fixed":
        return start + f'"size":{schema["size"]}}}'
    fields = [
        f'{{"name":"{one["name"]}","type":{canonical(one["type"], schemas, seen)}}}'
        for one in schema["fields"]
    ]
    return start + '"fields":[' + ",".join(fields) + "]}"


def test_fingerprint_algorithm_has_the_value_of_the_avro_specification():
    """The known fingerprint of the schema int shows that the check itself is right."""
    assert rabin('"int"').hex() == "8f5c393f1ad57572"


@pytest.mark.parametrize("name", names())
def test_fingerprint_is_that_of_the_avro_specification(name):
    """Any Avro implementation finds the schema: fingerprints are worked out a second time here."""
    assert by_name(name).fingerprint == rabin(canonical(name, schemas_in(SCHEMAS), set()))


SETS = {version: HERE / version / "schemas" for version in VERSIONS} | {"current": SCHEMAS}


@pytest.mark.parametrize(("reader", "writer"), list(product(SETS, SETS)))
def test_every_version_reads_every_other(reader, writer):
    """Full transitive compatibility between all released versions and the current schemas."""
    assert problems(schemas_in(SETS[reader]), schemas_in(SETS[writer])) == []


def _drop_field(schemas):
    fields = schemas["ledgermq.operation.Put"]["fields"]
    fields[:] = [one for one in fields if one["name"] != "messages"]


def _add_field(schemas):
    schemas["ledgermq.operation.Put"]["fields"].append({"name": "new", "type": "long"})


def _change_type(schemas):
    schemas["ledgermq.operation.Get"]["fields"][-1]["type"] = "string"


def _narrow(schemas):
    schemas["ledgermq.operation.Get"]["fields"][0]["type"] = "int"


def _resize(schemas):
    schemas["ledgermq.type.Identifier"]["size"] = 20


def _rename(schemas):
    schemas["ledgermq.operation.Tick"]["name"] = "Tock"


def _drop_schema(schemas):
    del schemas["ledgermq.operation.Tick"]


def _drop_branch(schemas):
    (outcomes,) = [
        one for one in schemas["ledgermq.outcome.Chunk"]["fields"] if one["name"] == "outcomes"
    ]
    outcomes["type"]["items"].pop()


def _change_items(schemas):
    schemas["ledgermq.operation.Suspect"]["fields"][-1]["type"]["items"] = "string"


def _drop_symbol(schemas):
    enum = schemas["ledgermq.type.AcknowledgeMode"]
    enum["symbols"].pop()
    del enum["default"]


CHANGES = [
    *(_drop_field, _add_field, _change_type, _narrow, _resize, _rename, _drop_schema),
    *(_drop_branch, _change_items, _drop_symbol),
]


@pytest.mark.parametrize("change", CHANGES)
def test_incompatible_change_is_found(change):
    """The compatibility test is not blind: each planted change breaks one direction at least."""
    before = schemas_in(SCHEMAS)
    after = copy.deepcopy(before)
    change(after)
    assert problems(before, after) or problems(after, before)


def test_new_field_with_a_default_is_compatible():
    """A change that Avro can bridge is none to complain about."""
    before = schemas_in(SCHEMAS)
    after = copy.deepcopy(before)
    field = {"name": "new", "type": ["null", "string"], "default": None}
    after["ledgermq.operation.Put"]["fields"].append(field)
    assert problems(before, after) == problems(after, before) == []
