"""Speed, history size, memory and import costs of perdure beside its neighbours. Start with `benchmarks.run`."""
