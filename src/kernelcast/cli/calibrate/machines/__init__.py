"""Machine descriptions as people read them: tables, comparisons, a page with figures."""
