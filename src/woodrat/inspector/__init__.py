"""The inspector: the web app that a server shows at `/`; its sources are in `ui/`, and what is built of them here."""
