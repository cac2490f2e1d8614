"""How the baseline's inputs lie on the candidate's ranks: inferred before anything is proved, or stated."""
