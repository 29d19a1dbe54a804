"""The stand-alone verifiers: one file each in Python and JavaScript, which import nothing of Woodrat."""
