"""The server: the ledger over REST. It only translates; the ledger decides the meaning of a verb."""
