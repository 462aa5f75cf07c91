"""Archives that are known to hurt, made in code: every one of them holds some of a log."""

import bz2
import gzip
import io
import lzma
import struct
import tarfile
import zlib
from functools import partial

from logs import structured, zip_of

LOG = structured()
SMALL = LOG[: LOG.index(b"\nV", 2000) + 1]
#: Enough to be seen as a bomb by the limits of the test, which are small.
MOST = b"\n" * (12 << 20)
PACK = {"gz": gzip.compress, "bz2": bz2.compress, "xz": partial(lzma.compress, preset=0)}
NAMES = {
    "absolute": "/tmp/hostile-absolute.log",
    "up": "../../hostile-up.log",
    "up inside": "a/../../../hostile.log",
    "windows": "..\\..\\hostile.log",
    "drive": "C:\\hostile.log",
    "home": "~/.hostile",
    "scratch": "000001",
    "control": "a\x1b[31m\n\r\u202eb.log",
    "surrogate": "\udcff\udcfe.log",
    "long": "x/" * 2000 + "y.log",
    "dots": "....//....//hostile.log",
    "mark": "a!/b!/c.log",
    "dash": "-rf",
    "device": "/dev/shm/hostile.log",
    "run": "../parts/hostile.json",
}
LINKS = {
    "symlink": (tarfile.SYMTYPE, "/etc/passwd"),
    "symlink up": (tarfile.SYMTYPE, "../../.."),
    "symlink loop": (tarfile.SYMTYPE, "link"),
    "hardlink": (tarfile.LNKTYPE, "/etc/shadow"),
    "character device": (tarfile.CHRTYPE, ""),
    "block device": (tarfile.BLKTYPE, ""),
    "fifo": (tarfile.FIFOTYPE, ""),
    "folder": (tarfile.DIRTYPE, ""),
    "contiguous": (tarfile.CONTTYPE, ""),
    "sparse": (tarfile.GNUTYPE_SPARSE, ""),
    "unknown": (b"Z", ""),
    "volume": (b"V", ""),
    "continued": (b"M", ""),
    "global": (b"g", ""),
}


def member(name, data=SMALL, kind=tarfile.REGTYPE, link="", size=None):
    """A header and its data, padded; ``size`` is what the header says instead."""
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = len(data), kind, link
    head = info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
    if size is not None:
        field = size if isinstance(size, bytes) else b"%011o\0" % size
        head = head[:-512] + checked(head[-512:-388] + field + head[-376:])
    return head + data + bytes(-len(data) % 512)


def checked(header):
    """A tar header with its right checksum."""
    blank = header[:148] + b" " * 8 + header[156:]
    return blank[:148] + b"%06o\0 " % sum(blank) + blank[156:]


def local(name, data=SMALL, method=8, packed=None, size=None, flags=0, extra=b"", stored=None):
    """A zip member; ``packed`` and ``size`` are what its header says instead."""
    if stored is None:
        squeezer = zlib.compressobj(9, zlib.DEFLATED, -15)
        stored = squeezer.compress(data) + squeezer.flush() if method == 8 else data
    name = name if isinstance(name, bytes) else name.encode("utf-8", "surrogateescape")
    sizes = len(stored) if packed is None else packed, len(data) if size is None else size
    crc = zlib.crc32(data)
    head = (b"PK\3\4", 20, flags, method, 0, 0, crc, *sizes, len(name), len(extra))
    return struct.pack("<4s5H3L2H", *head) + name + extra + stored


END = b"PK\5\6" + bytes(18)
GOOD = local("good.log", LOG)
TAR_END = bytes(1024)


def overlapping():
    """One kernel of packed data that a directory names 200 times."""
    kernel = local("a", MOST[: 1 << 20])
    sizes = len(kernel) - 31, 1 << 20, 4
    entry = struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, 0, 8, 0, 0, 0, *sizes, *[0] * 6)
    directory = b"".join(entry + b"%04d" % n for n in range(200))
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 200, 200, len(directory), len(kernel), 0)
    return kernel + directory + end


def nested_headers():
    """Members whose data begins with another member's header: each lies in the one before."""
    inner = SMALL
    for number in range(30):
        inner = local(f"{number}.log", inner, 0)
    return inner + END


def xz_of_much_memory():
    """An .xz that says it needs a dictionary of 4 GiB."""
    data = bytearray(lzma.compress(LOG))
    length = (data[12] + 1) * 4
    data[12 + 4] = 40
    data[12 + length - 4 : 12 + length] = struct.pack("<L", zlib.crc32(data[12 : 12 + length - 4]))
    return bytes(data)


def gz_head(flags, rest):
    """The log packed behind a header with optional fields."""
    return b"\x1f\x8b\x08" + bytes([flags]) + bytes(6) + rest + gzip.compress(LOG)[10:]


def zipped(files, times):
    """An archive of archives of archives."""
    data = zip_of(files)
    for _ in range(times):
        data = zip_of({f"{n}.zip": data for n in range(4)})
    return data


def tar(*members):
    return b"".join(members) + TAR_END


def archives():
    """Name → how to make it."""
    yield from (
        (f"tar name {name}", partial(tar, member(text), member("good.log", LOG)))
        for name, text in NAMES.items()
    )
    yield from (
        (f"zip name {name}", partial(bytes.join, b"", [local(text), GOOD, END]))
        for name, text in NAMES.items()
    )
    yield from (
        (
            f"tar {name}",
            lambda kind=kind, link=link: tar(
                member("link", b"", kind, link), member("link/x.log"), member("good.log", LOG)
            ),
        )
        for name, (kind, link) in LINKS.items()
    )
    bomb = LOG + MOST
    yield from ((f"{name} bomb", lambda pack=pack: pack(bomb)) for name, pack in PACK.items())
    yield from (
        (f"tar.{name} bomb", lambda pack=pack: pack(tar(member("b.log", bomb))))
        for name, pack in PACK.items()
    )
    yield from (
        (f"{name} twice", lambda pack=pack: pack(pack(bomb))) for name, pack in PACK.items()
    )
    yield from (
        (f"{name} streams", lambda pack=pack: pack(LOG) + pack(b"") * 3000)
        for name, pack in PACK.items()
    )
    yield from (
        (f"{name} cut", lambda pack=pack: pack(tar(member("a.log", LOG)))[:-40])
        for name, pack in PACK.items()
    )
    yield from (
        (f"{name} damaged", lambda pack=pack: pack(LOG)[:2000] + b"\xff" * 64 + pack(LOG)[2064:])
        for name, pack in PACK.items()
    )
    head = partial(member, "a.log", LOG)
    good = member("good.log", LOG)
    yield from {
        "tar size huge": lambda: tar(good, head(size=8**11 - 1)),
        "tar size 2**80": lambda: tar(good, head(size=b"\x80" + b"\xff" * 11)),
        "tar size negative": lambda: tar(good, head(size=b"\xff" * 12)),
        "tar size no number": lambda: tar(good, head(size=b"9" * 12)),
        "tar size zero": lambda: tar(good, head(size=0)),
        "tar size too small": lambda: tar(good, head(size=700)),
        "tar size too large": lambda: tar(good, head(size=len(LOG) * 2), good),
        "tar duplicate names": lambda: tar(good, *[member("x.log")] * 300),
        "tar many members": lambda: tar(good, *[member("x.txt", b"x")] * 3000),
        "tar of empty files": lambda: tar(good, *[member("x.log", b"")] * 3000),
        "tar no end": lambda: good + good,
        "tar checksum": lambda: good + good[:100] + b"\xff" + good[101:],
        "tar header only": lambda: good + head()[:512],
        "tar half a header": lambda: good + head()[:100],
        "tar two in one": lambda: tar(good) + tar(head()),
        "tar endless name": lambda: tar(good, member("x", b"n" * (1 << 20), b"L"), head()),
        "tar name size huge": lambda: tar(good, member("x", b"n" * 600, b"L", size=8**11 - 1)),
        "tar many long names": lambda: tar(good, *[member("x", b"n" * 200, b"L")] * 3000),
        "tar pax endless": lambda: tar(good, member("x", b"9" * (1 << 20), b"x"), head()),
        "tar pax length zero": lambda: tar(good, member("x", b"0 path=a\n" * 50, b"x"), head()),
        "tar pax length lies": lambda: tar(good, member("x", b"999999999 path=a\n", b"x"), head()),
        "tar pax size": lambda: tar(good, member("x", b"24 size=99999999999999\n\n", b"x"), head()),
        "tar pax size small": lambda: tar(good, member("x", b"9 size=1\n", b"x"), head()),
        "tar pax path": lambda: tar(good, member("x", b"17 path=../../up\n", b"x"), head()),
        "tar in tar": lambda: tar(member("a.tar", tar(member("b.tar", tar(good)), good)), good),
        "zip size lies small": lambda: GOOD + local("a.log", LOG, packed=100) + END,
        "zip size lies large": lambda: GOOD + local("a.log", LOG, packed=1 << 30) + END,
        "zip size unknown": lambda: GOOD + local("a.log", LOG, packed=(1 << 32) - 1) + END,
        "zip64 huge": lambda: (
            GOOD
            + local(
                "a", LOG, packed=(1 << 32) - 1, extra=struct.pack("<2H2Q", 1, 16, 1 << 62, 1 << 62)
            )
            + END
        ),
        "zip64 lies": lambda: (
            GOOD + local("a", LOG, packed=(1 << 32) - 1, extra=struct.pack("<2H", 1, 65000)) + END
        ),
        "zip stored and open": lambda: GOOD + local("a.log", LOG, 0, 0, 0, 8) + END,
        "zip open bomb": lambda: GOOD + local("a.log", bomb, 8, 0, 0, 8) + END,
        "zip unknown method": lambda: GOOD + local("a.log", LOG, 97) + END,
        "zip encrypted": lambda: GOOD + local("a.log", LOG, flags=1) + GOOD + END,
        "zip long name": lambda: GOOD + local("n" * 65535) + END,
        "zip long extra": lambda: GOOD + local("n", extra=b"\x99\0\0\0" * 16000) + END,
        "zip bomb": lambda: GOOD + local("a.log", bomb) + END,
        "zip bzip2 bomb": lambda: GOOD + local("a", bomb, 12, stored=bz2.compress(bomb)) + END,
        "zip xz bomb": lambda: GOOD + local("a", bomb, 95, stored=PACK["xz"](bomb)) + END,
        "zip overlapping": lambda: GOOD + overlapping(),
        "zip inside each other": lambda: GOOD + nested_headers(),
        "zip duplicate names": lambda: GOOD + local("x.log") * 300 + END,
        "zip folder with data": lambda: GOOD + local("folder/", LOG) + END,
        "zip of zips": lambda: zipped({"a.log": LOG}, 4),
        "zip of many bombs": lambda: GOOD + local("x.log", LOG + MOST[: 4 << 20]) * 12 + END,
        "zip of bombs packed": lambda: zip_of({"a.log": LOG, "b.gz": gzip.compress(bomb)}),
        "zip no directory": lambda: GOOD + GOOD,
        "zip no local header": lambda: GOOD + b"PK\1\2" + bytes(42) + GOOD,
        "zip damaged data": lambda: GOOD + local("a", LOG, stored=b"\xff" * 3000) + GOOD + END,
        "xz of much memory": xz_of_much_memory,
        "gz long name": lambda: gz_head(8, b"/etc/" + b"x" * 100_000 + b"\0"),
        "gz long extra": lambda: gz_head(4, struct.pack("<H", 65535) + b"x" * 65535),
        "gz wrong checksum": lambda: gzip.compress(LOG)[:-8] + bytes(4) + gzip.compress(LOG)[-4:],
        "gz wrong size": lambda: gzip.compress(LOG)[:-4] + b"\xff" * 4,
        "gz foreign end": lambda: gzip.compress(LOG) + b"x" * 100_000,
        "gz zero padding": lambda: gzip.compress(LOG) + bytes(1 << 20) + gzip.compress(LOG),
    }.items()


ARCHIVES = dict(archives())


def packed_in_tar(data):
    """``data`` as a member that passes through an archive which is packed itself."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as outer:
        info = tarfile.TarInfo("inner")
        info.size = len(data)
        outer.addfile(info, io.BytesIO(data))
    return made.getvalue()
