"""Downloads the weights of a repository in KAITO's training image: `fetch_model.py REPOSITORY REVISION FOLDER`."""

import os
import sys

from huggingface_hub import snapshot_download

if __name__ == "__main__":
    snapshot_download(
        sys.argv[1],
        revision=sys.argv[2],
        local_dir=sys.argv[3],
        token=os.environ.get("HF_TOKEN"),
        ignore_patterns=["*.bin", "*.pth", "*.pt", "*.gguf", "*.onnx", "original/*", "coreml/*"],
    )
