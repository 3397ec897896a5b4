"""JupyterLab for the Notebooks of kaigen."""
