"""Exchange: export, import, sync, copy and backup of logs."""
