"""The inspector: the web app at `/` of a server; its sources are in `ui/`, its build is here."""
