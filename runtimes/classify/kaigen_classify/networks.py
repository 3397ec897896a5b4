"""The networks: functions of torchvision's tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch.nn import functional as F

from kaigen_classify.weights import Tensors

CLASSES = 1000

Layer = Callable[[Any], Any]


def build(model: str, tensors: Tensors) -> Layer:
    """Return a network: a function from images to logits in float32.

    Args:
        model: its name.
        tensors: its weights.

    Raises:
        BadWeights: the weights are those of another network.
    """
    made = {"resnet50": resnet50, "mobilenet_v3_small": mobilenet_v3_small}[model](tensors)
    tensors.check_all_used()
    return made


def _in_order(layers: Sequence[Layer]) -> Layer:
    def run(x: Any) -> Any:
        for layer in layers:
            x = layer(x)
        return x

    return run


def _conv(
    tensors: Tensors,
    conv: str,
    norm: str,
    sizes: tuple[int, int],
    kernel: int = 1,
    *,
    stride: int = 1,
    groups: int = 1,
    eps: float = 1e-5,
    activation: Layer | None = None,
) -> Layer:
    """Return a convolution from `sizes[0]` to `sizes[1]` channels, its normalization, and an activation."""
    fed, made = sizes
    weight, bias, rest = tensors.convolution(conv, norm, made, fed // groups, kernel, kernel, eps=eps)
    padding = (kernel - 1) // 2

    def run(x: Any) -> Any:
        x = F.conv2d(x, weight, bias, stride=stride, padding=padding, groups=groups)
        if rest:
            x = F.batch_norm(x, *rest, eps=eps)
        return x if activation is None else activation(x)

    return run


def _linear(tensors: Tensors, name: str, fed: int, made: int) -> Layer:
    weight = tensors.placed(tensors.take(f"{name}.weight", made, fed), exact=True)
    bias = tensors.placed(tensors.take(f"{name}.bias", made), exact=True)
    return lambda x: F.linear(x, weight, bias)


def _average(x: Any) -> Any:
    """Return the mean of each channel, in float32: the layers after it are small."""
    return F.adaptive_avg_pool2d(x.float(), 1).flatten(1)


_relu: Layer = partial(F.relu, inplace=True)
_hardswish: Layer = partial(F.hardswish, inplace=True)

_STAGES = ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2))
"""Blocks, width and stride of each stage of resnet50 (source: torchvision/models/resnet.py)."""


def resnet50(tensors: Tensors) -> Layer:
    """Return resnet50 as in torchvision, where the middle convolution of a block has the stride."""
    layers: list[Layer] = [
        _conv(tensors, "conv1", "bn1", (3, 64), 7, stride=2, activation=_relu),
        partial(F.max_pool2d, kernel_size=3, stride=2, padding=1),
    ]
    fed = 64
    for stage, (blocks, width, stride) in enumerate(_STAGES, 1):
        for number in range(blocks):
            name = f"layer{stage}.{number}"
            layers.append(_bottleneck(tensors, name, fed, width, stride if number == 0 else 1))
            fed = width * 4
    return _in_order([*layers, _average, _linear(tensors, "fc", fed, CLASSES)])


def _bottleneck(tensors: Tensors, name: str, fed: int, width: int, stride: int) -> Layer:
    made = width * 4
    main = _in_order(
        [
            _conv(tensors, f"{name}.conv1", f"{name}.bn1", (fed, width), activation=_relu),
            _conv(tensors, f"{name}.conv2", f"{name}.bn2", (width, width), 3, stride=stride, activation=_relu),
            _conv(tensors, f"{name}.conv3", f"{name}.bn3", (width, made)),
        ]
    )
    shortcut: Layer | None = None
    if fed != made:
        shortcut = _conv(tensors, f"{name}.downsample.0", f"{name}.downsample.1", (fed, made), stride=stride)

    def run(x: Any) -> Any:
        return _relu(main(x).add_(x if shortcut is None else shortcut(x)))

    return run


@dataclass(frozen=True, slots=True)
class _Row:
    """A block of mobilenet_v3_small."""

    fed: int
    kernel: int
    expanded: int
    made: int
    squeezed: int
    activation: Layer
    stride: int


_ROWS = (
    _Row(16, 3, 16, 16, 8, _relu, 2),
    _Row(16, 3, 72, 24, 0, _relu, 2),
    _Row(24, 3, 88, 24, 0, _relu, 1),
    _Row(24, 5, 96, 40, 24, _hardswish, 2),
    _Row(40, 5, 240, 40, 64, _hardswish, 1),
    _Row(40, 5, 240, 40, 64, _hardswish, 1),
    _Row(40, 5, 120, 48, 32, _hardswish, 1),
    _Row(48, 5, 144, 48, 40, _hardswish, 1),
    _Row(48, 5, 288, 96, 72, _hardswish, 2),
    _Row(96, 5, 576, 96, 144, _hardswish, 1),
    _Row(96, 5, 576, 96, 144, _hardswish, 1),
)
"""The blocks; `squeezed` is 0 without squeeze and excitation (source: torchvision/models/mobilenetv3.py)."""

_EPS = 0.001


def mobilenet_v3_small(tensors: Tensors) -> Layer:
    """Return mobilenet_v3_small as in torchvision."""
    conv = partial(_conv, tensors, eps=_EPS)
    layers = [conv("features.0.0", "features.0.1", (3, 16), 3, stride=2, activation=_hardswish)]
    layers += [_inverted(tensors, f"features.{number}.block", row) for number, row in enumerate(_ROWS, 1)]
    layers.append(conv("features.12.0", "features.12.1", (96, 576), activation=_hardswish))
    first, last = (_linear(tensors, "classifier.0", 576, 1024), _linear(tensors, "classifier.3", 1024, CLASSES))
    return _in_order([*layers, _average, first, _hardswish, last])


def _inverted(tensors: Tensors, name: str, row: _Row) -> Layer:
    """Return an inverted residual block: expand, filter each channel, weigh the channels, project."""
    conv = partial(_conv, tensors, eps=_EPS)
    layers: list[Layer] = []

    def next_names() -> tuple[str, str]:
        return f"{name}.{len(layers)}.0", f"{name}.{len(layers)}.1"

    wide = row.expanded
    if wide != row.fed:
        layers.append(conv(*next_names(), (row.fed, wide), activation=row.activation))
    layers.append(
        conv(*next_names(), (wide, wide), row.kernel, stride=row.stride, groups=wide, activation=row.activation)
    )
    if row.squeezed:
        layers.append(_squeeze(tensors, f"{name}.{len(layers)}", wide, row.squeezed))
    layers.append(conv(*next_names(), (wide, row.made)))
    main = _in_order(layers)
    if row.stride == 1 and row.fed == row.made:
        return lambda x: main(x).add_(x)
    return main


def _squeeze(tensors: Tensors, name: str, wide: int, narrow: int) -> Layer:
    def pair(layer: str, *shape: int) -> tuple[Any, Any]:
        weight = tensors.take(f"{name}.{layer}.weight", *shape, 1, 1)
        return tensors.placed(weight), tensors.placed(tensors.take(f"{name}.{layer}.bias", shape[0]))

    inner, inner_bias = pair("fc1", narrow, wide)
    outer, outer_bias = pair("fc2", wide, narrow)

    def run(x: Any) -> Any:
        scale = F.adaptive_avg_pool2d(x, 1)
        scale = F.relu(F.conv2d(scale, inner, inner_bias), inplace=True)
        return x * F.hardsigmoid(F.conv2d(scale, outer, outer_bias))

    return run
