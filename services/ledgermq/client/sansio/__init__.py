"""The client's side of the protocol: no threads, no clocks of its own, no Kafka."""
