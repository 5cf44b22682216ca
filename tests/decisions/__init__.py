"""The property test of approvals: what is drawn, its shop, the rules it has to follow, and how it is played."""
