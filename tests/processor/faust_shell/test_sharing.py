"""How workers share queue managers: evenly, and with as few changes of hands as that takes."""

import json
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from ledgermq.processor.faust_shell.sharing import Sharing, Standing, share_out

NAMES = ("a", "b", "c", "d")
PARTITIONS = st.frozensets(st.integers(0, 7))
STANDINGS = st.builds(
    Standing, generation=st.integers(-1, 9), owned=PARTITIONS, unfit=st.just(frozenset())
)
GROUPS = st.dictionaries(st.sampled_from(NAMES), STANDINGS, min_size=1)


def standing(generation, *owned, unfit=(), stopped=()):
    """A worker that has partitions since a generation."""
    sets = {"owned": frozenset(owned), "unfit": frozenset(unfit), "stopped": frozenset(stopped)}
    return Standing(generation=generation, **sets)


def counts_of(shares, wanted):
    """How many of the wanted partitions each member has."""
    return [len(wanted.intersection(one)) for one in shares.values()]


@given(claimed=PARTITIONS, unclaimed=PARTITIONS, members=GROUPS)
def test_every_partition_goes_to_one_worker_and_no_worker_has_two_more_than_another(
    claimed, unclaimed, members
):
    """Whatever the workers say of themselves; of queue managers, and of all partitions."""
    spare = unclaimed - claimed
    shares = share_out(claimed, members, spare)
    assert sorted(one for share in shares.values() for one in share) == sorted(claimed | spare)
    for found in (counts_of(shares, claimed), counts_of(shares, claimed | spare)):
        assert max(found) - min(found) <= 1


@given(claimed=PARTITIONS, members=GROUPS)
def test_what_was_shared_out_is_shared_out_the_same_again(claimed, members):
    """A rebalance that changes nobody's number moves no queue manager."""
    first = share_out(claimed, members)
    settled = {name: standing(10, *share) for name, share in first.items()}
    assert {name: sorted(one) for name, one in share_out(claimed, settled).items()} == {
        name: sorted(one) for name, one in first.items()
    }


def test_a_worker_that_comes_gets_nothing_while_there_is_but_one_queue_manager():
    """It stands by, whatever its name is."""
    members = {"b": standing(3, 0), "a": standing(-1)}
    assert share_out({0}, members, {1, 2, 3})["b"][0] == 0


def test_a_worker_that_goes_moves_only_what_it_had():
    """The shares of the others stay where their states are."""
    members = {"a": standing(5, 0, 1), "b": standing(5, 2, 3)}
    shares = share_out(range(6), members)
    assert {0, 1} <= set(shares["a"])
    assert {2, 3} <= set(shares["b"])


def test_a_frozen_worker_that_comes_back_gets_nothing_back():
    """Whoever took over had it in a later generation."""
    members = {"frozen": standing(4, 0), "other": standing(5, 0)}
    assert share_out({0}, members) == {"frozen": [], "other": [0]}


def test_a_queue_manager_goes_to_a_worker_that_knows_its_version_or_to_nobody():
    """A worker that lacks the version does not keep it; if all lack it, it waits for one."""
    members = {"old": standing(5, 0, 1, unfit=(0,)), "new": standing(5)}
    assert share_out({0, 1}, members) == {"new": [0], "old": [1]}
    alone = {"old": standing(5, 0, 1, unfit=(0,))}
    assert share_out({0, 1}, alone) == {"old": [1]}


def test_a_queue_manager_that_is_stopped_stays_and_counts_for_nothing():
    """Whoever got it would stop it too, and end, if it had nothing else."""
    members = {"a": standing(5, 0, stopped=(1,)), "b": standing(-1)}
    assert share_out({0, 1}, members) == {"a": [0, 1], "b": []}
    members = {"a": standing(5, 0, 2, stopped=(1,)), "b": standing(-1)}
    assert share_out({0, 1, 2}, members) == {"a": [0, 1], "b": [2]}


def test_a_queue_manager_that_its_worker_had_stopped_goes_on_when_that_is_gone():
    """The next one tries it, and may find it mended."""
    assert share_out({0, 1}, {"b": standing(6, 0)}) == {"b": [0, 1]}


def test_what_workers_of_earlier_versions_tell_is_read():
    """They stop no queue manager, but end."""
    told = json.dumps({"generation": 3, "owned": [1], "unfit": []}).encode()
    assert Standing.decode(told) == standing(3, 1)


def test_what_workers_tell_each_other_survives_the_way_through_kafka():
    """The leader reads what members told, members what the leader made of it."""
    told = standing(7, 1, unfit=(3,), stopped=(2,))
    one = Sharing("log", lambda: told, lambda: [0, 1])
    two = Sharing("log", lambda: standing(-1), list)
    members = {"one": one.metadata(["log"]), "two": two.metadata(["log"])}
    cluster = SimpleNamespace(partitions_for_topic=lambda _: {0, 1, 2, 3})
    shares = one.assign(cluster, members)
    assert shares["one"].assignment == [("log", [1, 2])]
    assert shares["two"].assignment == [("log", [0, 3])]
    two.on_assignment(shares["two"])
    assert two.workers == 2
