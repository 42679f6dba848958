"""Subscriptions that sessions use: limits, last consumers, and what may not be made anew."""

import pytest

import ledgermq


def test_ses_07_unacknowledged_max_of_a_topic_holds_for_each_subscription(in_memory):
    """SES-07, decision 30: two subscriptions of one session pause and resume by themselves."""
    admin = in_memory.admin
    admin.create_topic("rates", unacknowledged_max=1)
    with in_memory.session(ack="INDIVIDUAL") as session:
        consumers = [session.consumer("topic:rates", prefetch=9) for _ in range(2)]
        session.producer("topic:rates").send_many(["a", "b"])
        first, other = (consumer.receive(20) for consumer in consumers)
        assert (first.body, other.body) == ("a", "a")
        assert admin.topic("rates").unacknowledged_max == 1
        paused = [one.paused for one in admin.session(session.handle).consumers]
        assert paused == [("unacknowledged-max",)] * 2
        first.acknowledge()
        assert consumers[0].receive(20).body == "b"
        assert consumers[1].receive(0) is None
        admin.alter_topic("rates", unacknowledged_max=0)
        assert consumers[1].receive(20).body == "b"
    admin.alter_topic("rates", description="changed", unacknowledged_max=7)
    assert admin.topic("rates").unacknowledged_max == 7
    with pytest.raises(ledgermq.RefusedError) as caught:
        admin.alter_topic("rates", unacknowledged_max=1_000_001)
    assert caught.value.code == "setting-invalid"


def test_ses_43_a_shared_subscription_is_gone_with_its_last_consumer(in_memory):
    """SES-43, SES-44, decision 25: what is held is acknowledged; the name is free for another."""
    named = {"subscription": "s", "shared": True}
    with in_memory.session(ack="CLIENT") as session, in_memory.session() as later:
        consumer = session.consumer("topic:news", prefetch=1, **named)
        producer = later.producer("topic:news")
        producer.send_many(["a", "b"])
        held = consumer.receive(20)
        consumer.close()
        (ended,) = in_memory.admin.subscriptions("news")
        assert (ended.kind, ended.receivers, ended.message_count) == ("ended", 0, 1)
        other = later.consumer("topic:news", selector="color = 'red'", **named)
        producer.send("c", properties={"color": "red"})
        assert other.receive(20).body == "c"
        held.acknowledge()
        (standing,) = in_memory.admin.subscriptions("news")
        assert (standing.kind, standing.name) == ("shared", "s")


def test_ses_51_who_holds_what_is_told_where_a_subscription_may_not_be_made_anew(in_memory):
    """SES-51, SES-58, decision 33: another selector is refused while deliveries are unsettled."""
    named = {"subscription": "s", "shared": True, "durable": True}
    with in_memory.session(ack="CLIENT") as session, in_memory.session() as other:
        consumer = session.consumer("topic:kept", **named)
        other.producer("topic:kept").send("a")
        held = consumer.receive(20)
        consumer.close()
        whose = f"session {session.handle} has 0 consumers and holds 1 deliveries"
        with pytest.raises(ledgermq.SubscriptionInUseError, match=whose):
            other.consumer("topic:kept", selector="color = 'red'", **named)
        held.acknowledge()
        other.consumer("topic:kept", selector="color = 'red'", **named)
