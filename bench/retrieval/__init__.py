"""The retrieval bench: does recall find what was stored, and nothing where nothing was?"""
