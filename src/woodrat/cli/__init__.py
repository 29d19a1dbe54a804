"""The command line: argparse in, tables or JSON out. Modules are imported by the verb that needs them."""
