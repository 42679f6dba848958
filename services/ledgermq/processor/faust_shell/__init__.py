"""What Faust is given and what is changed in it: application, transport, feed of records."""
