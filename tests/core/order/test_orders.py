"""Orders of a queue go with the last consumer that asks for them, or stay for the next one."""

import pytest

from support.scripts.play import play_lines

# What a get asks for of one message alone, by the option that it gives.
OF_ONE = ["msg=A", "correlation=a", "group=G", "seq=1", "offset=0", "number=0"]
OF_ALL = ["logical", "logical all"]


def orders_after(options: str) -> int:
    """How many orders a queue has once a consumer that asked with these options is closed."""
    lines = f"open CLIENT\ncreate q\nconsumer 1 q\nget 1 {options}\nclose-consumer 1"
    state = play_lines(lines).state
    return len(state.queues["q"].orders)


@pytest.mark.parametrize("options", OF_ONE)
def test_an_order_of_few_messages_goes_with_its_last_consumer(options):
    """Gets by message id would leave an order behind for each message else."""
    assert orders_after(options) == 0


@pytest.mark.parametrize("options", OF_ALL)
def test_an_order_of_the_whole_queue_stays_for_the_next_consumer(options):
    """To make it costs a look at all of the queue."""
    assert orders_after(options) == 1
