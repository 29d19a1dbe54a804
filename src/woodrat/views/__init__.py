"""Views: questions asked of observations and states. Pure."""
