"""A customer support agent for a small shop: an ordinary Pydantic AI agent over a real SQLite file.

`agent.py` declares the agent and its tools, `store.py` keeps the orders, and `model.py` answers without a key or a
network, so that the example runs anywhere. Nothing of it knows about durability but `app.py` and the idempotency key.
`demo.py` and its parts show what happens when a worker is killed and when a person has to decide.
"""
