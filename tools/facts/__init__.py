"""Make tables of kaigen/catalog from pinned packages: see docs/catalog.md."""
