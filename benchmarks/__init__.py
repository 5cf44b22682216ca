"""Speed, history size, memory and import costs of perdure beside its neighbours, and many runs that wait for a person.

Start with `benchmarks.run`.
"""
