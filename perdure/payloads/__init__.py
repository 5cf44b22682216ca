"""Where large payloads are kept outside Temporal. See docs/limits.md."""
