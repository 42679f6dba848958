"""Where messages can be and who gets them from there: destinations, subscriptions, consumers."""
