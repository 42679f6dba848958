"""Examples that the help of a command ends with, by the words that name it."""

from __future__ import annotations

from typing import Final

EXAMPLES: Final = {
    "up": ("ledgermq up --data-dir ledgermq-data",),
    "worker": ("ledgermq worker --bootstrap kafka-1:9092,kafka-2:9092 --name worker-1",),
    "top": ("ledgermq top", "ledgermq top 'orders.*' --sort oldest_seconds --interval 10"),
    "manager alter": (
        "ledgermq manager alter --redelivery-limit 5 --error-destination queue:dead",
        "ledgermq manager alter --maximum-lifetime 7d",
    ),
    "queue create": (
        "ledgermq queue create orders",
        "ledgermq queue create orders --redelivery-limit 3 --error-destination queue:dead",
        "ledgermq queue create orders --messages-max 10000 --time-to-live-override 12h",
    ),
    "queue alter": (
        "ledgermq queue alter orders --redelivery-delay-override 30s",
        "ledgermq queue alter orders --messages-max none --puts-disabled",
    ),
    "queue delete": ("ledgermq queue delete orders --purge --yes",),
    "queue list": (
        "ledgermq queue list 'orders.*' 'bills.*'",
        "ledgermq queue list --columns name,current,first_enqueued_at --sort current",
    ),
    "queue move": ("ledgermq queue move orders orders.old --reason 'made room' --dry-run",),
    "queue purge": (
        "ledgermq queue purge orders --selector \"region = 'EU'\" --reason 'a load test'",
    ),
    "queue resume": ("ledgermq queue resume orders",),
    "queue show": ("ledgermq queue show orders --json",),
    "queue stat": ("ledgermq queue stat orders", "ledgermq queue stat orders --states"),
    "queue suspend": ("ledgermq queue suspend orders",),
    "queue why": ("ledgermq queue why orders",),
    "topic create": (
        "ledgermq topic create prices --time-to-live-override 1h",
        "ledgermq topic create orders --error-destination queue:dead --moves-unrouted",
    ),
    "topic alter": ("ledgermq topic alter prices --unacknowledged-max 100",),
    "topic delete": ("ledgermq topic delete prices --purge --yes",),
    "topic list": ("ledgermq topic list 'prices.*'",),
    "topic show": ("ledgermq topic show prices",),
    "topic stat": ("ledgermq topic stat prices",),
    "subscription delete": ("ledgermq subscription delete audit --client-id billing --dry-run",),
    "binding create": (
        "ledgermq binding create 'orders.*.eu' queue:eu",
        "ledgermq binding create 'orders.#' topic:large --selector 'amount > 1000'",
    ),
    "binding delete": ("ledgermq binding delete 'orders.*.eu' queue:eu",),
    "binding list": ("ledgermq binding list --topic orders.air.eu",),
    "group list": ("ledgermq group list orders --incomplete",),
    "group show": ("ledgermq group show orders 9f3a01c277d0",),
    "put": (
        "ledgermq put orders tea --priority 7 --time-to-live 1h",
        "ledgermq put orders '{\"id\": 1}' --json-body --property region=EU",
        "printf 'one\\ntwo\\n' | ledgermq put topic:news",
    ),
    "get": (
        "ledgermq get orders --count 10 --wait 5",
        "ledgermq get orders --selector \"region = 'EU'\" --body-only",
    ),
    "browse": ("ledgermq browse orders --count 100 --selector \"region = 'EU'\"",),
    "msg copy": ("ledgermq msg copy orders orders.test --sequence 3..5 --reason 'to look at'",),
    "msg delete": ("ledgermq msg delete orders --sequence 7 --reason 'cannot be read'",),
    "msg move": (
        "ledgermq msg move orders orders.eu --selector \"region = 'EU'\" --reason 'own queue'",
    ),
    "msg show": ("ledgermq msg show orders 7",),
    "dlq list": ("ledgermq dlq list",),
    "dlq purge": ("ledgermq dlq purge dead --reason 'looked at'",),
    "dlq retry": ("ledgermq dlq retry dead --limit 10 --reason 'the database is back'",),
    "dlq show": ("ledgermq dlq show dead 7",),
    "journal republish": (
        "ledgermq journal republish --queue orders --since 2026-08-01 --to orders.again --dry-run",
    ),
    "bridge": (
        "ledgermq bridge --from-topic orders --to queue:orders --body json --bad orders.bad",
        "ledgermq bridge --from queue:shipped --to-topic shipped --kafka kafka7:9092",
    ),
    "relay create": ("ledgermq relay create --from queue:orders@QM1 --to queue:orders@QM2",),
    "relay delete": ("ledgermq relay delete orders",),
    "relay run": ("ledgermq relay run orders",),
    "relay show": ("ledgermq relay show orders",),
    "replay": (
        "ledgermq replay --from QM1@120 --to QM1@480 --source orders --into orders.again --dry-run",
        "ledgermq replay --from 2026-11-21T10:00:00Z --to 2026-11-21T11:00:00Z --into same",
    ),
    "session end": ("ledgermq session end 1234 --reason 'its program hangs' --yes",),
    "session show": ("ledgermq session show 1234",),
    "txn rollback": ("ledgermq txn rollback 1234 --reason 'nobody will end it' --dry-run",),
    "txn show": ("ledgermq txn show 1234",),
    "trace": (
        "ledgermq trace 0f3c09c4a1d24d27a50ffcf1a4b1c0de",
        "ledgermq trace --correlation-id order-4711 --html lives.html",
    ),
    "rebuild": ("ledgermq rebuild --at 2026-11-21T11:40:02Z --queue orders",),
    "restore": ("ledgermq restore --dry-run",),
    "diff": ("ledgermq diff --from 2026-11-21T10:00:00Z --to 2026-11-21T10:05:00Z",),
    "sql": ('ledgermq sql "SELECT destination, count(*) FROM messages GROUP BY destination"',),
    "tables write": (
        "ledgermq tables write /data/tables",
        "ledgermq tables write /data/delta --format delta --archive /backup/ledger",
    ),
    "archive list": ("ledgermq archive list /backup/ledger",),
    "archive prove": ("ledgermq archive prove /backup/ledger",),
    "archive update": ("ledgermq archive update /backup/ledger",),
    "audit": ("ledgermq audit --report report", "ledgermq audit --archive /backup/ledger"),
    "chain show": ("ledgermq chain show", "ledgermq chain show --at 1234"),
    "log relocate": ("ledgermq log relocate --before 2026-08-01T00:00:00Z --dry-run",),
    "log skip": ("ledgermq log skip 1234 --reason 'a tool wrote with transactions' --yes",),
    "log tail": (
        "ledgermq log tail --last 100",
        "ledgermq log tail --follow --kind Put --kind Commit --grep orders",
    ),
    "log trim": ("ledgermq log trim --before 2026-08-01T00:00:00Z --dry-run",),
    "acl": ("ledgermq acl client --principal User:till --bootstrap kafka-1:9093",),
    "schema check": ("ledgermq schema check --registry http://localhost:8081/apis/ccompat/v7",),
    "schema list": ("ledgermq schema list --registry http://localhost:8081/apis/ccompat/v7",),
    "schema register": (
        "ledgermq schema register --registry http://localhost:8081/apis/ccompat/v7",
    ),
    "check cluster": ("ledgermq check cluster --lag-max 1000",),
    "check queue": ("ledgermq check queue probes --put 1 --get 1",),
    "check worker": ("ledgermq check worker --url http://localhost:9101 --ready",),
}
