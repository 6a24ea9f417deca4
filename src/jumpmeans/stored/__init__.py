"""Model files: what a fitted model knows, as JSON and plain arrays in one zip file (docs/model-files.md).

`archive` is the file, which trusts nothing that it reads; `plain` turns objects into JSON and arrays and back; `kinds`
says which classes may stand in a file. A class that is listed there by `@stored` says itself what it is made of.
"""

from .kinds import Fields, ModelFields, stored
from .plain import read_model

__all__ = ["Fields", "ModelFields", "read_model", "stored"]
