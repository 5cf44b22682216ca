"""Tools from elsewhere. Empty in this version."""
