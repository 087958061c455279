"""Pictures of data larger than memory: `oc.show.histogram(x)`, `image(x)`, `spy(A)`, `degrees(G)`, `scatter(x, y)`.

Each reads its data through the engine, within the memory limit and with the progress of any run, and draws the few
numbers that come of it. One rule says on what, the argument `ax`:

- None, the default: on matplotlib's current Axes, which it returns, where matplotlib is installed (the extra
  `outcore[show]`); without matplotlib it returns a `Drawing`.
- an Axes of matplotlib: on that one, which it returns.
- False: a `Drawing`, whether matplotlib is installed or not.

A `Drawing` has the numbers (counts, edges, cells), is a picture in text of at most 100 columns where it is printed, and
an SVG in notebooks; `drawing.plot(ax)` draws it with matplotlib later, without reading the data again.

The room uses `sparse` and `graph`, arrays and runs, and draws by `_show`. Start with `_drawing.py` (`Drawing`), then
`_blocks.py` (data cut so that it is read once) and `_counting.py` (histograms).
"""

import typing as _typing

from outcore._base.names import public_names as _public_names
from outcore._lazy.absent import hinted as _hinted
from outcore.show._counting import *
from outcore.show._drawing import *
from outcore.show._images import *
from outcore.show._structure import *

__getattr__ = _hinted(__name__)

if not _typing.TYPE_CHECKING:  # a type checker follows the imports
    __all__ = _public_names(globals())
