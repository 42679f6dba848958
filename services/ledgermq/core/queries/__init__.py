"""Reading the state to answer questions; nothing here changes what the fold decides."""
