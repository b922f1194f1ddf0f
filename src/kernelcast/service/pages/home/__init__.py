"""Home, and the lists that lead from it: estimates, models, the audit log, the API."""
