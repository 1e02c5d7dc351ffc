"""Common parts of pages: templates, figures as data for scripts, plotly.js."""

from __future__ import annotations

import json
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tcplab.figures.model import Drawable
from tcplab.present.definitions import DEFINITIONS, anchor
from tcplab.quantities import bytes_text, time_text, unbroken
from tcplab.results import certificate
from tcplab.safe_text import visible, visible_json


def page_environment() -> Environment:
    """The templates of pages."""
    environment = Environment(
        loader=PackageLoader("tcplab.present", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["fact"] = _fact
    environment.filters["verified"] = certificate.described
    environment.filters["measured"] = lambda value, what: certificate.shown(what, value)
    environment.filters["term"] = anchor
    environment.filters["code"] = _code
    environment.filters["unbroken"] = lambda text: Markup.escape(unbroken(visible(text, lines=True)))
    environment.filters["grouped"] = lambda count: f"{count:,}"
    environment.globals["definitions"] = DEFINITIONS
    environment.filters["bytes"] = lambda size: bytes_text(float(f"{size:.3g}"))
    return environment


def figure_json(figure: Drawable) -> Markup:
    """A figure for a script element: `<` is escaped, so that no text can end it."""
    from tcplab.figures.draw_plotly import draw

    return script_json(json.loads(draw(figure).to_json()))


def script_json(data: Any) -> Markup:
    """Data for a script element: no text in it can end the element, or steer how the page is read."""
    text = visible_json(json.dumps(data, separators=(",", ":")))
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704


def _visible(value: Any) -> Any:
    """A value as a template prints it: text from elsewhere without control characters."""
    return visible(value, lines=True) if isinstance(value, str) and not isinstance(value, Markup) else value


def plotly_script() -> Markup:
    """plotly.js, to stand in a page."""
    from plotly.offline import get_plotlyjs

    # Only this exact sequence would end the element.
    return Markup(get_plotlyjs().replace("</script", "<\\/script"))  # noqa: S704


def _fact(value: Any, name: str) -> str:
    """An engine's fact: times by their name, counts in groups of three digits."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if name == "simulated":
        return time_text(value)
    if name == "wall_time":
        return f"{value:.3g} s"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _code(text: str) -> Markup:
    """Text whose `commands` stand between backticks."""
    parts = visible(text, lines=True).split("`")
    code = Markup("<code>{}</code>")
    return Markup().join(code.format(part) if at % 2 else unbroken(part) for at, part in enumerate(parts))
