"""Uncompressed RGB TIFF files of any size, a few rows at a time, written and read without any image library."""
import struct

import numpy

LONG8 = 16
TYPE_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 12: 8, LONG8: 8}


def write(path, side, row_of, layout):
    """A little-endian BigTIFF of side x side pixels of u8 RGB; row_of(y) gives the 3 * side bytes of row y."""
    rows, columns = (256, 256) if layout == "tiles" else (16, side)
    blocks = -(-side // rows) * -(-side // columns)
    tags = [(256, 4, [side]), (257, 4, [side]), (258, 3, [8, 8, 8]), (259, 3, [1]), (262, 3, [2]), (277, 3, [3]), (284, 3, [1])]
    sizes = [rows * columns * 3] * blocks
    if layout == "strips":
        sizes[-1] = (side - (side - 1) // rows * rows) * side * 3
        tags += [(278, 4, [rows])]
    else:
        tags += [(322, 4, [columns]), (323, 4, [rows])]
    with open(path, "wb") as file:
        file.write(b"\0" * 16)
        offsets = []
        for top in range(0, side, rows):
            band = numpy.stack([row_of(y) for y in range(top, min(top + rows, side))])
            if layout == "tiles":
                padded = numpy.zeros((rows, -(-side // columns) * columns * 3), numpy.uint8)
                padded[:len(band), :side * 3] = band
                band = padded.reshape(rows, -1, columns * 3).swapaxes(0, 1)
                start = file.tell()
                offsets += [start + i * rows * columns * 3 for i in range(len(band))]
            else:
                offsets.append(file.tell())
            file.write(numpy.ascontiguousarray(band))
        names = (324, 325) if layout == "tiles" else (273, 279)
        tags += [(names[0], LONG8, offsets), (names[1], LONG8, sizes)]
        _write_directory(file, sorted(tags))


def _write_directory(file, tags):
    formats = {3: "H", 4: "I", LONG8: "Q"}
    entries = []
    for tag, kind, values in tags:
        data = struct.pack(f"<{len(values)}{formats[kind]}", *values)
        if len(data) > 8:
            place = file.tell()
            file.write(data)
            data = struct.pack("<Q", place)
        entries.append(struct.pack("<HHQ", tag, kind, len(values)) + data.ljust(8, b"\0"))
    directory = file.tell()
    file.write(struct.pack("<Q", len(entries)) + b"".join(entries) + struct.pack("<Q", 0))
    file.seek(0)
    file.write(struct.pack("<2sHHHQ", b"II", 43, 8, 0, directory))


class Reader:
    """Rows of an uncompressed TIFF or BigTIFF in strips, 8 bits a sample."""

    def __init__(self, path):
        self.file = open(path, "rb")
        order, version = struct.unpack("<2sH", self.file.read(4))
        self.big = version == 43
        if order != b"II" or version not in (42, 43):
            raise ValueError(f"{path} is no little-endian TIFF file")
        self.file.seek(8 if self.big else 4)
        self.tags = self._directory(self._number("Q" if self.big else "I"))
        self.height, self.width = self.tags[257][0], self.tags[256][0]
        if self.tags.get(259, [1]) != [1] or 322 in self.tags:
            raise ValueError(f"{path} is compressed or tiled")
        self.rows_per_strip = self.tags.get(278, [self.height])[0]
        self.row_bytes = self.width * self.tags[277][0]

    def _number(self, kind):
        return struct.unpack(f"<{kind}", self.file.read(struct.calcsize(kind)))[0]

    def _directory(self, place):
        self.file.seek(place)
        count = self._number("Q" if self.big else "H")
        tags = {}
        for _ in range(count):
            tag, kind = struct.unpack("<HH", self.file.read(4))
            values = self._number("Q" if self.big else "I")
            inline = self.file.read(8 if self.big else 4)
            behind = self.file.tell()
            size = values * TYPE_BYTES.get(kind, 1)
            if size > len(inline):
                self.file.seek(struct.unpack("<Q" if self.big else "<I", inline)[0])
                inline = self.file.read(size)
            if kind in (3, 4, LONG8):
                tags[tag] = list(struct.unpack_from(f"<{values}{ {3: 'H', 4: 'I', LONG8: 'Q'}[kind] }", inline))
            self.file.seek(behind)
        return tags

    def row(self, y):
        strip, within = divmod(y, self.rows_per_strip)
        self.file.seek(self.tags[273][strip] + within * self.row_bytes)
        return numpy.frombuffer(self.file.read(self.row_bytes), numpy.uint8)
