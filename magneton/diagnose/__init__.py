"""Why one side spends more: from call paths to the variable that decides, and whether it really does."""
