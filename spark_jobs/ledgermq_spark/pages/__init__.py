"""Pages for people: HTML that needs nothing else, readable without JavaScript too."""
