"""The explorer's stylesheet, and whether the page is dark."""

import anywidget
import traitlets

from memviz.widgets.assets import check_built, script


class Page(anywidget.AnyWidget):
    """Puts the stylesheet beside it into the page and reports the page's theme; shows nothing."""

    _esm = script("page")
    theme = traitlets.Enum(("light", "dark"), default_value="light").tag(sync=True)

    def __init__(self) -> None:
        check_built(self._esm, "page")
        super().__init__()
        self.add_class("memviz-page")
