"""Workers: recorded runs replayed by processes of their own."""
