"""How Kafka is spoken to: options of its clients, what it refuses, rights that it wants."""
