"""The benchmark corpus: one package per application, described by its application.yaml."""
