"""Browsers: checked when they are made, and bound to their session as consumers are."""

import threading

import pytest

import ledgermq


def test_ses_40_what_cannot_be_browsed_is_no_browser(connection, queue):
    """SES-40, decision 28: a selector, a queue, a temporary queue that is gone, an option."""
    connection.admin.create_queue(queue)
    with connection.session() as session:
        gone = session.temporary_queue()
        session.browser(gone)
        session.delete_temporary(gone)
        for browser in (session.browser, connection.browser):
            with pytest.raises(ledgermq.InvalidSelectorError):
                browser(queue, selector="a = ")
            with pytest.raises(ledgermq.QueueNotFoundError):
                browser(queue + ".nowhere")
            with pytest.raises(ledgermq.TemporaryDestinationDeletedError, match="deleted"):
                browser(gone)
            with pytest.raises(ledgermq.GetOptionsError):
                browser(queue, order="SIDEWAYS")
            with pytest.raises(ledgermq.InvalidDestinationError):
                browser("topic:" + queue.partition(":")[2])


def test_ses_40_a_browser_of_a_coroutine_is_checked_as_well(run, queue):
    """Decision 28: awaited, entered or iterated over, it raises before it shows anything."""

    async def work(connection):
        async with connection.session() as session:
            await session.producer(queue).send("x")
            with pytest.raises(ledgermq.InvalidSelectorError):
                await session.browser(queue, selector="a = ")
            with pytest.raises(ledgermq.QueueNotFoundError):
                async with session.browser(queue + ".nowhere"):
                    pass
            found = [one.body async for one in session.browser(queue)]
            async with session.browser(queue) as browser:
                found += [one.body async for one in browser]
            browser = await session.browser(queue)
        for call in (browser.first, browser.next, browser.__aiter__().__anext__):
            with pytest.raises(ledgermq.IllegalStateError, match="closed"):
                await call()
        with pytest.raises(ledgermq.IllegalStateError, match="closed"):
            assert browser.destination
        with pytest.raises(ledgermq.IllegalStateError, match="closed"):
            await session.browser(queue)
        return found

    assert run(work) == ["x", "x"]


def test_ses_25_a_browser_ends_with_its_session(connection, queue):
    """SES-25, SES-27, decision 27: also an iterator in the middle of a page, and its settings."""
    with connection.session() as session:
        session.producer(queue).send_many("abc")
        browser = session.browser(queue)
        shown = iter(browser)
        assert next(shown).body == "a"
    calls = [lambda: next(shown), browser.first, browser.next, lambda: iter(browser)]
    calls += [lambda name=name: getattr(browser, name) for name in ("destination", "selector")]
    calls += [lambda: browser.position]
    for call in calls:
        with pytest.raises(ledgermq.IllegalStateError, match="closed"):
            call()
    browser.close()


def test_ses_02_a_browser_is_for_the_thread_that_its_session_is_for(connection, queue):
    """SES-02, decision 28: with a listener set, other threads may not browse."""
    entered, leave, found = threading.Event(), threading.Event(), []
    with connection.session() as session:
        session.producer(queue).send("x")
        browser = session.browser(queue)

        def listener(_):
            found.append(browser.first())
            entered.set()
            leave.wait(20)

        session.consumer(queue).set_message_listener(listener)
        assert entered.wait(20)
        for call in (browser.first, lambda: list(browser), lambda: session.browser(queue)):
            with pytest.raises(ledgermq.IllegalStateError, match="listeners, whose thread"):
                call()
        leave.set()
    assert found == [None]


def test_ses_25_attributes_of_what_a_closed_session_made_are_refused(connection, queue):
    """SES-25, decision 27: each public attribute of producers and consumers, by session or own."""
    for close_session in (True, False):
        session = connection.session()
        made = [session.producer(queue), session.consumer(queue)]
        names = [
            ("destination", "priority", "persistent", "time_to_live", "delivery_delay"),
            ("destination", "selector", "subscription", "prefetch", "message_listener"),
        ]
        made[0].priority = 7
        assert (made[0].priority, made[0].redelivery_limit, made[1].subscription) == (7, -1, None)
        for one in [session] if close_session else made:
            one.close()
        for one, attributes in zip(made, names, strict=True):
            for name in attributes:
                with pytest.raises(ledgermq.IllegalStateError, match="closed"):
                    getattr(one, name)
        with pytest.raises(ledgermq.IllegalStateError, match="closed"):
            made[0].priority = 3
        session.close()
