# PyTorch, which several images start from, so that a registry and a node store its layer once.
# Build from the folder above, or run `make images`: docker build -f shared/torch.Dockerfile -t kaigen-torch .
# One image for CPU and GPU: PyTorch from the Python index brings CUDA, and does not start without it. The secret
# torch.txt is the lock of another build.

ARG BASE=docker.io/library/python:3.13-slim-trixie@sha256:9d2e5553305c7c7b0097999bb17187c69b921ccd6bc9d40e4bb5ebe652c00285

FROM ${BASE}
WORKDIR /src
COPY shared/install.sh shared/torch.txt ./
# One stage, because a second one would copy gigabytes: what only the build needs goes in the same step.
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=secret,id=ca.crt --mount=type=secret,id=torch.txt \
    sh install.sh torch torch.txt && rm -rf /opt/build /src/*
WORKDIR /
