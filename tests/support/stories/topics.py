"""Stories of subscriptions that are made, made anew, and end with what they have."""

from __future__ import annotations

from ledgermq.protocol import operations as op
from support.brokers.log_writer import Script
from support.model.moves import SETTINGS


def ended_in_flight() -> Script:
    """Shared subscriptions end while deliveries are in flight: settled, given back, still held."""
    script = Script()
    publisher = script.session()
    sessions = [script.session() for _ in range(3)]
    for one in sessions:
        one.subscribe("t", shared=True, subscription="s", credit=2)
        for word in ("first", "second", "third"):
            publisher.publish("t", word)
        one.send(op.CloseConsumer, consumer=1, unseen=[])
    publisher.publish("t", "late")
    sessions[0].acknowledge(1)
    sessions[0].recover(2)
    sessions[1].acknowledge(2)
    script.session().subscribe("t", shared=True, subscription="s", selector="color = 'red'")
    publisher.publish("t", "red", color="red")
    return script


def made_anew() -> Script:
    """A durable subscription is made anew and unsubscribed; one of a consumer goes with it."""
    script = Script()
    publisher = script.session()
    one = script.session(client_id="c")
    durable = {"durable": True, "subscription": "s"}
    one.subscribe("t", selector="color = 'red'", **durable)
    publisher.publish("t", "first", color="red")
    publisher.publish("t", "second", color="blue")
    one.send(op.CloseConsumer, consumer=1, unseen=[])
    one.subscribe("t", 2, **durable, credit=1)
    publisher.publish("t", "third")
    one.acknowledge(1)
    one.subscribe("t", 3)
    publisher.publish("t", "fourth")
    one.send(op.CloseConsumer, consumer=2, unseen=[])
    one.send(op.Unsubscribe, subscription="s")
    one.close()
    return script


def ended_with_a_connection() -> tuple[Script, str]:
    """An open put to a temporary queue vanishes; a takeover returns what the older one held.

    Returns the name of the temporary queue, too.
    """
    script = Script()
    owner = script.session()
    connection = script.state.sessions[owner.handle].connection.identity
    name = f"temporary/{connection.hex()}/reply"
    owner.send(op.CreateTemporary, destination=f"queue:{name}")
    other = script.session("TRANSACTED")
    other.put(name, "answer")
    other.put("q", "kept")
    owner.close()
    other.commit(puts=2)
    other.commit(puts=1)
    older = script.session(client_id="c", takeover=b"t")
    older.subscribe("t", durable=True, subscription="s", credit=1)
    other.publish("t", "news")
    other.commit()
    newer = script.session(client_id="c", takeover=b"t")
    newer.subscribe("t", durable=True, subscription="s", credit=1)
    newer.acknowledge(1)
    older.get(1)
    script.session(client_id="c")
    return script, name


def made_by_its_subscription() -> tuple[Script, int]:
    """A durable subscription makes its topic, and ends first; and where that is long ago."""
    script = Script()
    session = script.session()
    session.subscribe("t", subscription="s", durable=True, shared=True)
    session.send(op.CloseConsumer, consumer=1, unseen=[])
    session.send(op.Unsubscribe, subscription="s")
    session.close()
    other = script.session()
    end = other.put("q", "a")
    other.send(op.DeleteTopic, topic="t", purge=False)
    return script, end


def wanted_nowhere_in_two_ways() -> Script:
    """What is bound to two topics goes unrouted from one to the other, in either order."""
    script = Script()
    one = script.session()
    for topic, target in (("dead", ""), ("u", "topic:dead"), ("t", "topic:u")):
        settings = dict.fromkeys(SETTINGS) | {"error_destination": target}
        one.send(op.CreateTopic, topic=topic, settings=settings, moves_unrouted=True)
    for topic, targets in (("a", "tu"), ("b", "ut")):
        for target in targets:
            one.send(op.Bind, topics=topic, destination=f"topic:{target}")
        one.publish(topic, topic)
    return script


def unbound_by_another() -> tuple[Script, int]:
    """A binding of an open session is ended by another session; and where that is long ago."""
    script = Script()
    one, other = script.session(), script.session()
    one.send(op.CreateQueue, queue="q")
    one.send(op.Bind, topics="t", destination="queue:q")
    other.send(op.Unbind, topics="t", destination="queue:q")
    other.publish("t", "of long ago")
    end = other.publish("t", "of before")
    other.publish("t", "handed on by nothing")
    return script, end


def bound_and_sent_back() -> Script:
    """What a binding hands on goes elsewhere from the subscription that made its topic, too."""
    script = Script()
    one = script.session()
    for queue in ("q", "dead"):
        one.send(op.CreateQueue, queue=queue)
    one.subscribe("t")
    settings = dict.fromkeys(SETTINGS) | {"error_destination": "queue:dead", "redelivery_limit": 0}
    one.send(op.AlterTopic, topic="t", settings=settings)
    one.send(op.Bind, topics="t", destination="queue:q")
    one.publish("t", "x")
    one.get(1)
    one.recover(1)
    return script
