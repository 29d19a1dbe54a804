"""OTLP: spans that any OpenTelemetry exporter sends, as runs."""
