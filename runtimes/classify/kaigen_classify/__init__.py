"""Labels images with resnet50 or mobilenet_v3_small, with torchvision's weights."""

__version__ = "0.2.0"
