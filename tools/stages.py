"""The picture of docs/architecture.md: the packages of a run, in the order in which a spec passes them."""

from __future__ import annotations

_STAGES = (
    (
        ("yaml", "parse"),
        ("environments", "override and pin"),
        ("kinds", "validate"),
        ("dialects", "lower to own kinds"),
        ("compile", "specs to objects"),
    ),
    (
        ("extend", "patch objects"),
        ("check", "schemas, policies"),
        ("emit", "manifests, charts"),
        ("gitops", "Argo CD and Flux"),
        ("output", "write all or nothing"),
    ),
)
_WIDTH, _HEIGHT, _GAP, _ROW = 160, 52, 34, 152
_TOP, _LEFT = 74, 30
STYLE = """
.st { --paper: #ffffff; --frame: #f8fafc; --edge: #cbd5e1; --ink: #0f172a; --faint: #64748b; --line: #94a3b8;
  --box: #ffffff; --data: #0891b2; }
@media (prefers-color-scheme: dark) {
  .st { --paper: #0b1120; --frame: #111a2e; --edge: #334155; --ink: #e2e8f0; --faint: #94a3b8; --line: #64748b;
    --box: #1e293b; --data: #22d3ee; }
}
.st text { font: 12px ui-sans-serif, system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
  fill: var(--ink); text-anchor: middle; }
.st .name { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-weight: 600; }
.st .does, .st .title { fill: var(--faint); font-size: 11px; }
.st .title { text-anchor: start; }
.st .box { fill: var(--box); stroke: var(--edge); }
.st .frame { fill: var(--frame); stroke: var(--edge); }
.st .data { fill: none; stroke: var(--data); }
.st .line { fill: none; stroke: var(--line); stroke-width: 1.4; marker-end: url(#arrow); }
.st .dashed { stroke-dasharray: 5 4; }
.st marker path { fill: var(--line); }
"""
"""The colors and fonts of drawn pictures, light and dark."""


def stages_svg() -> str:
    """Return the picture."""
    right = _x(4) + _WIDTH + _LEFT
    boxes = [_box(_x(c), _y(r), *stage) for r, row in enumerate(_STAGES) for c, stage in enumerate(row)]
    lines = [_line(_x(c) + _WIDTH, _y(r) + 26, _x(c + 1), _y(r) + 26) for r in (0, 1) for c in range(4)]
    turn = (_y(0) + _HEIGHT + _y(1)) // 2 - 26
    lines += [
        _path(f"M{_x(4) + 80} {_y(0) + _HEIGHT}V{turn}H{_x(0) + 80}V{_y(1) - 3}"),
        _line(_x(0) + 80, 42, _x(0) + 80, _y(0)),  # the specs
        _line(_x(4) + 80, 42, _x(4) + 80, _y(0)),  # sizing
        _path(f"M{_x(1) + 80} {_y(1) - 25}V{_y(1) - 3}", dashed=True),
        _path(f"M{_x(3) + 80} {_y(1) - 25}V{_y(1) - 3}", dashed=True),
        _line(_x(4) + 80, _y(1) + _HEIGHT, _x(4) + 80, _y(1) + 92),
        _line(_x(3) + 80, _y(1) + _HEIGHT, _x(3) + 80, _y(1) + 92),
    ]
    data = [
        _data(_x(0) - 10, 16, 180, "specs and kaigen.yaml"),
        _data(_x(4) - 10, 16, 180, "sizing: GPUs for models"),
        _data(_x(1) + 80 - 20, _y(1) - 51, 3 * _WIDTH - 52, "kubernetes: object kinds and schemas"),
        _data(_x(4) - 10, _y(1) + 92, 180, "rendered/"),
        _data(_x(3) - 40, _y(1) + 92, 194, "diff, graph, secrets, publish"),
    ]
    height = _y(1) + 134
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="st" width="{right}" height="{height}" '
        f'viewBox="0 0 {right} {height}" role="img" aria-label="The packages of a run: yaml, environments, kinds, '
        f'dialects, compile, extend, check, emit, gitops, output">\n<style>{STYLE}</style>\n'
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z"/></marker></defs>\n'
        f'<rect width="{right}" height="{height}" rx="8" style="fill:var(--paper)"/>\n'
        f'<rect class="frame" x="12" y="54" width="{right - 24}" height="{_y(1) + _HEIGHT - 36}" rx="8"/>\n'
        f'<text class="title" x="{_x(1)}" y="70">pipeline: one run, with a cache by file</text>\n'
        + "\n".join([*boxes, *data, *lines])
        + "\n</svg>\n"
    )


def _x(column: int) -> int:
    return _LEFT + column * (_WIDTH + _GAP)


def _y(row: int) -> int:
    return _TOP + 8 + row * _ROW


def _box(x: int, y: int, name: str, does: str) -> str:
    middle = x + _WIDTH // 2
    return (
        f'<rect class="box" x="{x}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="6"/>'
        f'<text class="name" x="{middle}" y="{y + 22}">{name}</text>'
        f'<text class="does" x="{middle}" y="{y + 40}">{does}</text>'
    )


def _data(x: int, y: int, width: int, text: str) -> str:
    return (
        f'<rect class="data" x="{x}" y="{y}" width="{width}" height="26" rx="13"/>'
        f'<text x="{x + width // 2}" y="{y + 17}">{text}</text>'
    )


def _line(x: int, y: int, to_x: int, to_y: int) -> str:
    if x == to_x:
        return _path(f"M{x} {y}V{to_y - 2}")
    return _path(f"M{x} {y}H{to_x - 2}")


def _path(steps: str, *, dashed: bool = False) -> str:
    return f'<path class="line{" dashed" if dashed else ""}" d="{steps}"/>'
