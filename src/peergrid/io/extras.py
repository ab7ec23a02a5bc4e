"""The libraries of pictures that are extras of the installation."""

from __future__ import annotations

from typing import Any

from peergrid.errors import UsageError, extra


def film_library() -> Any:
    """The module imageio_ffmpeg. Raises UsageError if it is not installed."""
    try:
        import imageio_ffmpeg
    except ImportError:
        raise UsageError(
            f"output.animation = 'mp4' needs imageio-ffmpeg, which is not installed; {extra('mp4')}, or use 'gif'."
        ) from None
    return imageio_ffmpeg


def surface_library() -> Any:
    """The module skimage.measure. Raises UsageError if it is not installed."""
    try:
        from skimage import measure
    except ImportError:
        raise UsageError(
            f"output.surfaces needs scikit-image, which is not installed; {extra('surfaces')}, or leave it out."
        ) from None
    return measure
