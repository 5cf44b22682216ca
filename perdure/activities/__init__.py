"""The activities: everything that touches user code, models or the network. Runs on workers, never in the workflow."""
