"""Testing: Woodrat's own test tools, shipped so that others can use them too.

`laws` tries the laws of merge on a policy of your own (`woodrat.testing.laws.check_policy`), `contract` what an engine
of your own must do (`woodrat.testing.contract.EngineContract`); `generators`, `ledgers`, `tellings` and `crashing` make
what they are tried on. They need hypothesis: `pip install woodrat[testing]`.
"""
