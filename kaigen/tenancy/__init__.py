"""Who may reach what outside its namespace: one table of rules, as checks of specs and as admission policies."""
