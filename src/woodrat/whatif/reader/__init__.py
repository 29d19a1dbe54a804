"""Reading recorded runs and state as they would have been under a supposition."""
