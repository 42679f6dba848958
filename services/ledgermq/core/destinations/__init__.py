"""Queues, topics and subscriptions: made, altered, removed; and the numbers of messages there."""
