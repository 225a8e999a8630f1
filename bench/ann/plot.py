"""Recall against queries a second as an SVG, written by hand: no library is needed."""
import html
import math

WIDTH, HEIGHT = 860, 520
LEFT, RIGHT, TOP, BOTTOM = 80, 230, 46, 58
COLOURS = ("#c1272d", "#e08214", "#0b4f9e", "#3f8fc4", "#7fb8d8", "#2d8a4e", "#8cbf5f", "#6a3d9a", "#b294c7", "#555555")
RECALLS = (0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999)


def across(recall):
    """Recall on a scale that gives each further nine the same room."""
    return -math.log10(max(1 - recall, 4e-4))


def ticks(low, high):
    """1, 2, 5 times powers of ten within the range."""
    found = []
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        found += [m * 10 ** power for m in (1, 2, 5) if low <= m * 10 ** power <= high]
    return found


def svg(title, down, curves):
    """curves: [(label, [(recall, rate)])]. A logarithmic axis for the rate; further right and higher is better."""
    points = [p for _, curve in curves for p in curve]
    if not points:
        return None
    left, right = across(max(0.5, min(r for r, _ in points))) - 0.05, max(across(r) for r, _ in points) + 0.05
    low, high = min(v for _, v in points) / 1.25, max(v for _, v in points) * 1.25

    def x(recall):
        return LEFT + (across(recall) - left) / (right - left) * (WIDTH - LEFT - RIGHT)

    def y(rate):
        return HEIGHT - BOTTOM - math.log(rate / low) / math.log(high / low) * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
           f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="24" font-size="15">{html.escape(title)}</text>']
    for recall in RECALLS:
        if left <= across(recall) <= right:
            out.append(f'<path d="M{x(recall):.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>'
                       f'<text x="{x(recall):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{recall:g}</text>')
    for rate in ticks(low, high):
        out.append(f'<path d="M{LEFT} {y(rate):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 8}" y="{y(rate) + 4:.1f}" text-anchor="end">{rate:,.0f}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 16}" text-anchor="middle">recall@10</text>')
    out.append(f'<text transform="translate(18 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" '
               f'text-anchor="middle">{html.escape(down)}</text>')
    for number, (label, curve) in enumerate(curves):
        colour = COLOURS[number % len(COLOURS)]
        curve = sorted(p for p in curve if p[0] >= 0.5)
        path = "L".join(f"{x(r):.1f} {y(v):.1f}" for r, v in curve)
        if path:
            out.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        out += [f'<circle cx="{x(r):.1f}" cy="{y(v):.1f}" r="3.2" fill="{colour}"/>' for r, v in curve]
        row = TOP + 14 + number * 20
        out.append(f'<path d="M{WIDTH - RIGHT + 14} {row - 4}h22" stroke="{colour}" stroke-width="3"/>'
                   f'<text x="{WIDTH - RIGHT + 42}" y="{row}">{html.escape(label)}</text>')
    return "\n".join(out + ["</svg>", ""])
