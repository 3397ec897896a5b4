"""Specs that several tests use."""

QWEN = """\
apiVersion: kaigen.dev/v1alpha1
kind: Model
metadata:
  name: qwen
spec:
  source:
    huggingFace:
      repo: Qwen/Qwen2.5-0.5B-Instruct
      revision: 7ae557604adf67be50417f59c2c2f167def9a775
  store:
    volume: {size: 5Gi}
"""
"""A small Model in a volume."""
