"""The picture of docs/lifetimes.md: who creates and deletes what, in the order of time."""

from __future__ import annotations

from tools.stages import STYLE

_ACTORS = ("Git", "Argo CD or Flux", "claim Job", "Job", "kaigen-reaper")
_GIT, _SYNCER, _CLAIM, _JOB, _REAPER = range(len(_ACTORS))
_STEPS = (
    (_GIT, _SYNCER, "claim Job, Job"),
    (_SYNCER, _CLAIM, "create (wave 1)"),
    (_CLAIM, _CLAIM, "create the volume, owned by the app's ServiceAccount"),
    (_SYNCER, _JOB, "create (wave 3)"),
    (_JOB, _JOB, "run, write to the volume; its end starts the clock"),
    (_REAPER, _JOB, "delete its pods after ttl"),
    (_REAPER, _CLAIM, "delete the volume after output.volume.ttl"),
    (_SYNCER, _SYNCER, "compare: both Jobs exist, nothing to do"),
    (_GIT, _SYNCER, "the spec is removed"),
    (_SYNCER, _JOB, "delete the Jobs and the ServiceAccount, and with it a volume that is left"),
)
_COLUMN, _ROW, _TOP, _MARGIN = 220, 44, 84, 110
_BOX_WIDTH, _BOX_HEIGHT, _LOOP = 150, 34, 26


def lifetime_svg() -> str:
    """Return the picture."""
    width = 2 * _MARGIN + (len(_ACTORS) - 1) * _COLUMN + 60
    height = _TOP + len(_STEPS) * _ROW + 12
    lives = [
        f'<path class="line dashed" style="marker-end:none" d="M{_x(actor)} {16 + _BOX_HEIGHT}V{height - 12}"/>'
        for actor in range(len(_ACTORS))
    ]
    boxes = [
        f'<rect class="box" x="{_x(actor) - _BOX_WIDTH // 2}" y="16" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" '
        f'rx="6"/><text class="name" x="{_x(actor)}" y="38">{name}</text>'
        for actor, name in enumerate(_ACTORS)
    ]
    steps = [_step(number, *step) for number, step in enumerate(_STEPS)]
    label = ", then ".join(f"{_ACTORS[start]} to {_ACTORS[end]}: {text}" for start, end, text in _STEPS)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="st" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{label}">\n<style>{STYLE}</style>\n'
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z"/></marker></defs>\n'
        f'<rect width="{width}" height="{height}" rx="8" style="fill:var(--paper)"/>\n'
        + "\n".join([*lives, *boxes, *steps])
        + "\n</svg>\n"
    )


def _x(actor: int) -> int:
    return _MARGIN + actor * _COLUMN


def _step(number: int, start: int, end: int, text: str) -> str:
    """Return the arrow of a step with its text above it; of a step within one actor, an arrow that turns back."""
    y = _TOP + number * _ROW
    if start == end:
        path = f"M{_x(start)} {y}h{_LOOP}v14h-{_LOOP - 2}"
        place = f'x="{_x(start) + _LOOP + 8}" y="{y + 11}" style="text-anchor:start"'
    else:
        path = f"M{_x(start)} {y + 8}H{_x(end) + (2 if end < start else -2)}"
        place = f'x="{(_x(start) + _x(end)) // 2}" y="{y}"'
    # The paper around the letters hides the dashed lines behind them.
    halo = "paint-order:stroke;stroke:var(--paper);stroke-width:5px"
    place = place.replace('style="', f'style="{halo};') if "style=" in place else f'{place} style="{halo}"'
    return f'<path class="line" d="{path}"/><text {place}>{text}</text>'
