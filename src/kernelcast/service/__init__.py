"""HTTP interface and web pages."""
