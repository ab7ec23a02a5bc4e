"""Files of grey images: PNG and TIFF with 8 or 16 bits per pixel, through Pillow."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from warnings import catch_warnings

import numpy as np
from PIL import Image, UnidentifiedImageError

from peergrid.arguments import check_kind, path_of
from peergrid.errors import UsageError
from peergrid.files import replacing
from peergrid.images.table import Pixels

TYPES: dict[str, type[np.uint8] | type[np.uint16]] = {"L": np.uint8, "I;16": np.uint16, "I;16B": np.uint16}
"""Pillow's modes of grey pixels."""
FORMATS = {".png": "PNG", ".tif": "TIFF", ".tiff": "TIFF"}


def read(path: str | Path) -> Pixels:
    """The pixels of a file, shape (height, width), type uint8 or uint16.

    Raises UsageError for a missing file, for images that are not grey with 8 or 16 bits per pixel, and for several in
    one file.
    """
    path = path_of("path", path)
    try:
        with (
            catch_warnings(action="ignore"),  # of Pillow, about parts of a file that say nothing of pixels
            Image.open(path, formats=tuple(set(FORMATS.values()))) as image,
        ):
            kind = TYPES.get(image.mode)
            if kind is None:
                raise UsageError(
                    f"'{path}' is expected to be a grey image with 8 or 16 bits a pixel, got one of Pillow's mode "
                    f"'{image.mode}'; convert it first, for instance with image.convert('L')."
                )
            if (pages := getattr(image, "n_frames", 1)) > 1:
                raise UsageError(f"'{path}' is expected to hold one image, got {pages}; write each to its own file.")
            return np.asarray(image).astype(kind)
    except UnidentifiedImageError:
        raise UsageError(f"'{path}' is expected to be a PNG or TIFF image, and is neither.") from None
    except Image.DecompressionBombError:
        raise UsageError(
            f"'{path}' has more than the {2 * (Image.MAX_IMAGE_PIXELS or 0):,} pixels that Pillow opens; cut "
            "it in parts."
        ) from None
    except (OSError, SyntaxError, TypeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"The image '{path}' could not be read: {reason}.") from None


def write(path: str | Path, pixels: Any) -> None:
    """Write pixels, shape (height, width), type uint8 or uint16; the suffix of the name is the format.

    Raises UsageError for another suffix, shape or type, and if the file cannot be written.
    """
    path = path_of("path", path)
    check_kind("pixels", pixels, np.ndarray, "a NumPy array")
    format_ = FORMATS.get(path.suffix.lower())
    if format_ is None:
        raise UsageError(f"The name of an image ends in {', '.join(FORMATS)}, got '{path.name}'.")
    if pixels.ndim != 2 or pixels.dtype not in (np.uint8, np.uint16):
        raise UsageError(f"An image has two axes of uint8 or uint16, got {pixels.ndim} axes of {pixels.dtype}.")
    with replacing(path) as partial:
        Image.fromarray(np.ascontiguousarray(pixels)).save(partial, format=format_)
