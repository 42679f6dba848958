"""Ports that are chosen for what is to listen on them later."""

import random

from ledgermq.embedded.ports import PORTS, choose_port


def test_no_port_is_chosen_twice_before_it_can_be_taken():
    """Whatever a program does to the random numbers of all."""
    chosen = []
    for _ in range(100):
        random.seed(1)
        chosen.append(choose_port())
    assert len(set(chosen)) == len(chosen)


def test_ports_do_not_run_out():
    """A program that chooses for long comes to those that it chose long ago."""
    assert {choose_port() for _ in range(len(PORTS))} <= set(PORTS)
