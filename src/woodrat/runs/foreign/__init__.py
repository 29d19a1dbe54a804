"""Foreign: runs that other tools recorded, translated into trajectories or entries, one file per format."""
