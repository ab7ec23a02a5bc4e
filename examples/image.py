"""A grey image a third as bright, and one with brighter shadows: a formula for every pixel, on any devices."""

import numpy as np

import peergrid
import peergrid.images

image = np.random.default_rng(1).integers(0, 256, (480, 641)).astype(np.uint8)  # or peergrid.images.read("photo.png")
dark = peergrid.images.apply("x / 3", image, devices="cpu:2")
bright = peergrid.images.apply(lambda x: peergrid.sqrt(x) * 16, image, devices="cpu:2")
assert (dark == image // 3).all()
print(f"mean {image.mean():.1f}; a third as bright {dark.mean():.1f}; brighter shadows {bright.mean():.1f}")
