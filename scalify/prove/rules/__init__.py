"""Rules: what may be concluded about views, from what. One module per algebra; each rule is pure."""
