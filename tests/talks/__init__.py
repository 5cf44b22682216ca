"""Random sessions, played in lockstep: the player is the model."""
