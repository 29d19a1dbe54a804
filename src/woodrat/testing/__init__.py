"""Testing: what Woodrat is tested with, shipped so that others can test with it too.

`laws` tries the laws of merge on a policy of your own (`woodrat.testing.laws.check_policy`); `generators` makes the
histories it tries them on. Both need hypothesis: `pip install woodrat[testing]`.
"""
