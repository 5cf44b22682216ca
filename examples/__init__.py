"""Examples: each folder is one program that runs by itself."""
