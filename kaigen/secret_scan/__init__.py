"""Finds credentials in texts and documents."""
