"""What can be wrong in a declaration, checked when the `App` is built. Each error names what is known."""
