"""Topics that send what no subscription wants to their error destination."""


def test_what_nobody_subscribes_to_is_found_at_the_error_destination(connection, queue):
    """It says where it was and why it went, and can be sent back once somebody subscribes."""
    topic = queue.removeprefix("queue:")
    dead = f"{topic}.dead"
    admin = connection.admin
    admin.create_queue(dead)
    admin.create_topic(topic, error_destination=f"queue:{dead}", moves_unrouted=True)
    with connection.session() as session:
        session.producer(f"topic:{topic}").send("early", properties={"region": "EU"})
        (found,) = session.browser(f"queue:{dead}")
        assert (found.body, found.properties["region"]) == ("early", "EU")
        assert (found.origin.destination, found.origin.reason) == (f"topic:{topic}", "unrouted")
        status = admin.topic(topic)
        assert (status.moved, status.dropped, status.settings["moves_unrouted"]) == (1, 0, True)
        with session.consumer(f"topic:{topic}") as consumer:
            sent_back = admin.retry_messages(f"queue:{dead}", reason="there is a subscription")
            assert sent_back.affected == 1
            assert consumer.receive(10).body == "early"


def test_a_unit_of_work_that_is_rolled_back_leaves_nothing_there(in_memory):
    """What nobody wants goes with the commit."""
    in_memory.admin.create_queue("dead")
    in_memory.admin.create_topic("t", error_destination="queue:dead", moves_unrouted=True)
    with in_memory.session(transacted=True) as session:
        producer = session.producer("topic:t")
        producer.send("never")
        session.rollback()
        producer.send("now")
        session.commit()
        assert [one.body for one in session.browser("queue:dead")] == ["now"]


def test_the_setting_is_off_until_it_is_altered(in_memory):
    """Then what nobody wants is no longer dropped."""
    in_memory.admin.create_queue("dead")
    in_memory.admin.create_topic("t", error_destination="queue:dead")
    with in_memory.session() as session:
        producer = session.producer("topic:t")
        producer.send("dropped")
        in_memory.admin.alter_topic("t", moves_unrouted=True)
        producer.send("moved")
        assert in_memory.admin.topic("t").dropped == 1
        assert [one.body for one in session.browser("queue:dead")] == ["moved"]
