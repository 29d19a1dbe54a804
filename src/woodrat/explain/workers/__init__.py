"""Workers: decisions reported as writes make them stale, by writes of this process or of any."""
