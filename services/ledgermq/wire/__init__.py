"""The wire: Avro schemas, framing, log topics and the registry of queue managers."""
