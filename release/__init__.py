"""`python3 dev.py release`: what is built, checked, installed and tried before a version is given away."""
