"""The server: the ledger over REST. Translation only: what a verb means is for the ledger to say."""
