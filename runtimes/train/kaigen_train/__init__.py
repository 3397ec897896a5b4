"""Fine-tunes language models: LoRA, QLoRA, or all weights."""

__version__ = "0.2.0"
