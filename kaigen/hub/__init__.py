"""The client of the Hugging Face Hub: what names there stand for, and what a revision of a repository contains."""
