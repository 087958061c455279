"""The names of the package, but for sparse matrices, graphs and learning: these are made of them.

Each name is listed once: by `__all__` of the file that has it, or by its import here.
"""

import typing as _typing

from outcore import config as config
from outcore import constants as constants
from outcore import dates as dates
from outcore import elementwise as elementwise
from outcore import errors as errors
from outcore import fft as fft
from outcore import io as io
from outcore import linalg as linalg
from outcore import random as random
from outcore import stats as stats
from outcore._base.names import public_names as _public_names
from outcore._core import version as _version
from outcore._functions.aggregating import *
from outcore._functions.blocks import *
from outcore._functions.compiled import jit as jit
from outcore._functions.generalized import *
from outcore._functions.lanes import *
from outcore._functions.overlap import *
from outcore._functions.pyramids import *
from outcore._groups.groups import *
from outcore._lazy.array import Array as Array
from outcore._loops.decorator import loops as loops
from outcore._numpy_like.arranging import *
from outcore._numpy_like.bessel import *
from outcore._numpy_like.bits import *
from outcore._numpy_like.calculus import *
from outcore._numpy_like.comparing import *
from outcore._numpy_like.correlation import *
from outcore._numpy_like.counting import *
from outcore._numpy_like.einstein import *
from outcore._numpy_like.histograms import histogram2d as histogram2d
from outcore._numpy_like.histograms import histogram_bin_edges as histogram_bin_edges
from outcore._numpy_like.histograms import histogramdd as histogramdd
from outcore._numpy_like.inserting import *
from outcore._numpy_like.missing import *
from outcore._numpy_like.order import *
from outcore._numpy_like.positions import *
from outcore._numpy_like.spacing import geomspace as geomspace
from outcore._numpy_like.spacing import logspace as logspace
from outcore._numpy_like.windows import *
from outcore._opening.group import *
from outcore._opening.opening import *
from outcore._run.append import *
from outcore._run.iterate import iterate as iterate
from outcore._run.run import *
from outcore._session.record import Outcome as Outcome
from outcore._session.session import Session as Session
from outcore._session.session import clear as clear
from outcore._show.explanation import Explanation as Explanation
from outcore._show.picture import Picture as Picture
from outcore._show.profile import Profile as Profile
from outcore._show.profile import profile as profile
from outcore._standard.creation import *
from outcore._standard.dtypes import *
from outcore._standard.indexing import *
from outcore._standard.info import __array_namespace_info__ as __array_namespace_info__
from outcore._standard.linear_algebra import *
from outcore._standard.manipulation import *
from outcore._standard.repeating import *
from outcore._standard.searching import *
from outcore._standard.sets import categories as categories
from outcore._standard.sets import isin as isin
from outcore._standard.sets import setxor1d as setxor1d
from outcore._standard.sets import unique as unique
from outcore._standard.sets import unique_all as unique_all
from outcore._standard.sets import unique_counts as unique_counts
from outcore._standard.sets import unique_inverse as unique_inverse
from outcore._standard.sets import unique_values as unique_values
from outcore._standard.sorting import *
from outcore._standard.statistical import *
from outcore._standard.utility import *
from outcore._tables.categorical import Categorical as Categorical
from outcore._tables.csv import read_csv as read_csv
from outcore._tables.ingest import from_arrow as from_arrow
from outcore._tables.ingest import open_table as open_table
from outcore._tables.ipc import read_arrow as read_arrow
from outcore._tables.output import to_parquet as to_parquet
from outcore._tables.parquet import read_parquet as read_parquet
from outcore._tables.table import Table as Table
from outcore._tables.table import table as table
from outcore.constants import *
from outcore.dates import Dates as Dates
from outcore.elementwise import *
from outcore.text import *

__version__: str = _version()
__array_api_version__ = "2025.12"

if not _typing.TYPE_CHECKING:  # a type checker follows the imports
    __all__ = [*_public_names(globals()), "__array_api_version__", "__array_namespace_info__", "__version__"]
