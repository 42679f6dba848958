"""The benchmark's rows at depth: one course for all, on a place that is gone afterwards."""

import pytest
from confluent_kafka.admin import AdminClient

from ledgermq_benchmarks import main
from ledgermq_benchmarks.depth import DEPTH_ROWS, checkpoint_overhead, depth_course


def test_one_filled_queue_serves_all_rows_of_a_run(monkeypatch):
    """The course is run once for each run, with the rows that were asked for."""
    courses: list[list[str]] = []

    def course(bootstrap, rows, *, say):
        courses.append(list(rows))
        return {name: (float(len(courses)), {"detail": 1.0}) for name in rows}

    monkeypatch.setattr(main, "depth_course", course)
    names = ("restart", "fill", "depth-memory")
    document = main.measure("b:1", runs=3, names=names)
    assert courses == [["fill", "depth-memory", "restart"]] * 3
    assert [row["name"] for row in document["rows"]] == courses[0]
    assert [row["runs"] for row in document["rows"]] == [[1.0, 2.0, 3.0]] * 3
    # 2 messages/s is too little, 2 s and 2 GiB are not and are too much.
    assert [row["meets_minimum"] for row in document["rows"]] == [False, False, True]


@pytest.mark.long
@pytest.mark.kafka
@pytest.mark.slow
def test_a_small_course_gives_every_row_and_leaves_nothing_behind(broker):
    """A worker of its own is filled, killed, restarted and drained; its topics are deleted."""
    found = depth_course(broker.bootstrap, messages=3_000)
    assert set(found) == set(DEPTH_ROWS)
    assert all(value > 0 for value, _ in found.values())
    assert found["depth-random"][1]["bystander_max_ms"] > 0
    ratio, details = checkpoint_overhead(broker.bootstrap, messages=500, depth=1_000)
    assert ratio > 0
    assert details["checkpoint_records"] >= 0
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    left = [one for one in admin.list_topics(timeout=10).topics if one.startswith("bench-")]
    assert left == []
