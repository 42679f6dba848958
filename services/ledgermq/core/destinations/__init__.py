"""Queues, topics and subscriptions: made, altered, removed; numbers and times of messages there."""
