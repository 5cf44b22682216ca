"""The tests. Every one that runs a workflow does so on the real server."""
