"""End-to-end tests: real programs under the real attntrace, the report compared as compact text."""
