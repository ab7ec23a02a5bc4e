"""One formula applied to every pixel of a grey image, on processors and GPUs.

image = peergrid.images.read("photo.png")
peergrid.images.write("dark.png", peergrid.images.apply("x / 3", image, devices="cuda:0,1"))
"""

from peergrid.images.apply import Applied, applied, apply
from peergrid.images.files import read, write

__all__ = ["Applied", "applied", "apply", "read", "write"]
