"""Serving engines: one class for each, behind one interface, registered in `registry`."""
