"""Laws of redelivery and quotas, and frames of messages and of the room that they take."""
