"""The command line: `ledgermq`, a printer of what client, processor and Spark jobs say."""
