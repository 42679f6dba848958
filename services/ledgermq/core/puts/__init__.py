"""Messages taken in: what a Put says of groups, room in the storage, quotas."""
