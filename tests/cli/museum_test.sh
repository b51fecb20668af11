#!/usr/bin/env bash
# A museum of files made to hurt whoever opens them - bombs, lies, cycles, quines - and damaged copies of each: all come back bit for bit, in bounded memory.
source "$(dirname "$0")/lib.sh"
export KIN_REPOSITORY=$work/repo
mkdir museum
python3 - <<'PYTHON'
import base64, bz2, gzip, io, lzma, random, struct, zipfile, zlib

chance = random.Random(20261117)
words = ["".join(chance.choices("abcdefghiklmnoprstu", k=chance.randint(2, 9))) for _ in range(2000)]
museum = {}


def prose(size):
    return " ".join(chance.choices(words, k=size // 5)).encode()[:size]


text = prose(40000)


def raw_deflate(data, level=6):
    encoder = zlib.compressobj(level, zlib.DEFLATED, -15)
    return encoder.compress(data) + encoder.flush()


def gz(data, level=6):
    return gzip.compress(data, level, mtime=0)


# ---- gzip. A block of zeros after a full flush leans on nothing, so it can be repeated: 1 GB in a second.
encoder = zlib.compressobj(9, zlib.DEFLATED, -15)
megabyte = encoder.compress(bytes(1 << 20)) + encoder.flush(zlib.Z_FULL_FLUSH)
crc = 0
for _ in range(1000):
    crc = zlib.crc32(bytes(1 << 20), crc)
museum["bomb.gz"] = gz(b"")[:10] + megabyte * 1000 + b"\3\0" + struct.pack("<II", crc, 1000 << 20)
museum["wrong_sums.gz"] = gz(text)[:-8] + b"\xff" * 8
museum["empty_members.gz"] = gz(b"") * 10000
museum["trailing_garbage.gz"] = gz(text) + chance.randbytes(5000) + gz(text)[:300]
museum["long_name.gz"] = b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * 70000 + b"\0" + gz(text)[10:]
nested = text
for _ in range(20):
    nested = gz(nested)
museum["nested_20.gz"] = nested
museum["block_type_3.gz"] = gz(b"")[:10] + b"\7" * 5000
museum["stored_lengths.gz"] = gz(b"")[:10] + b"\0\5\0\xfa\xffhello" * 3000 + b"\1\0\0\0\0" + bytes(8)


# A gzip file that holds itself, after Russ Cox (research.swtch.com/zip): steps of five bytes, "literally the next
# n" and "the last n again", which print each other; and a checksum that is part of what it sums.
def again(size):  # two matches of up to ten bytes, at a distance of 17 to 20: 40 bits in a block of fixed codes
    bits, count = 0, 0

    def put(value, width, is_code=False):
        nonlocal bits, count
        if is_code:
            value = int(f"{value:0{width}b}"[::-1], 2)
        bits |= value << count
        count += width

    put(2, 3)
    for length in (size // 2, size - size // 2):
        put(length - 2, 7, True)
        put(8, 5, True)
        put(size - 17, 3)
    put(0, 7, True)
    assert count == 40
    return bits.to_bytes(5, "little")


def literally(size):
    return b"\0" + struct.pack("<HH", size, size ^ 0xFFFF)


def quine(crc):
    head = b"\x1f\x8b\x08\x08" + bytes(5) + b"\xffq\0"
    tail = b"\1\0\0\xff\xff" + struct.pack("<I", crc) + struct.pack("<I", quine_size)
    first, last, four = again(len(head) + 5), again(len(tail) + 5), again(20)
    l0, l1, l4, l_head, l_tail = (literally(n) for n in (0, 5, 20, len(head) + 5, len(tail) + 5))
    return b"".join([
        head, l_head, head, l_head, first, l1, first, l1, l1, l4, first, l1, l1, l4, four, l4, four, l4, four, l4,
        four, l4, four, l0, l0, l_tail, four, l0, l0, l_tail, last, tail, last, tail])


quine_size = 0
quine_size = len(quine(0))
# The sum is affine in the bits of its own field, so 32 equations give it.
base = zlib.crc32(quine(0))
rows = []
for bit in range(32):
    rows.append([zlib.crc32(quine(1 << bit)) ^ base ^ 1 << bit, 1 << bit])
solution, rest = 0, base
for bit in range(32):
    pivot = next((row for row in rows if row[0] >> bit & 1), None)
    if pivot is None:
        continue
    rows.remove(pivot)
    for row in rows:
        if row[0] >> bit & 1:
            row[0] ^= pivot[0]
            row[1] ^= pivot[1]
    if rest >> bit & 1:
        rest ^= pivot[0]
        solution ^= pivot[1]
museum["quine.gz"] = quine(solution)
assert gzip.decompress(museum["quine.gz"]) == museum["quine.gz"]


# Matches that no encoder would choose, which take whoever looks for his reasons as long as can be: in text of two letters,
# and from far away in zeros.
def fixed_blocks(tokens):  # a number is a literal below 144; length and distance: a match, of up to 10 bytes or 258
    bits, count, out = 0, 0, bytearray()

    def put(value, width, is_code=False):
        nonlocal bits, count
        bits |= (int(f"{value:0{width}b}"[::-1], 2) if is_code else value) << count
        count += width
        while count >= 8:
            out.append(bits & 255)
            bits >>= 8
            count -= 8

    for i, token in enumerate(tokens):
        if i % 16383 == 0:
            if i > 0:
                put(0, 7, True)
            put(2 | (i + 16383 >= len(tokens)), 3)
        if isinstance(token, int):
            put(48 + token, 8, True)
            continue
        length, distance = token
        put(*((197, 8) if length == 258 else (length - 2, 7)), True)
        extra = max((distance - 1).bit_length() - 2, 0)
        symbol = 2 * extra + (distance - 1 >> extra)
        put(symbol, 5, True)
        put(distance - 1 & (1 << extra) - 1, extra)
    put(0, 7, True)
    return bytes(out) + bytes([bits])


tokens, size = [97 + chance.randrange(2) for _ in range(40)], 40
while size < 30000:
    tokens.append((chance.randint(3, 10), chance.randint(1, size)) if chance.random() < 0.8 else 97 + chance.randrange(2))
    size += 1 if isinstance(tokens[-1], int) else tokens[-1][0]
slow = gz(b"")[:10] + fixed_blocks(tokens) + bytes(8)
assert len(zlib.decompressobj(-15).decompress(slow[10:])) == size
museum["walk.gz"] = gz(b"")[:10] + fixed_blocks([0] + [(258, 4090 if i > 20 and i % 4 == 3 else 1) for i in range(150000)]) + bytes(8)

# ---- bzip2: 45 MB in one block of 40 bytes or so.
block = bz2.compress(bytes(45_000_000))
museum["bomb.bz2"] = block * 25
museum["empty_streams.bz2"] = bz2.compress(b"") * 5000
museum["wrong_sum.bz2"] = bz2.compress(text)[:-3] + b"abc"
museum["trailing_garbage.bz2"] = bz2.compress(text) + b"BZh9garbage" * 100
museum["periods.bz2"] = bz2.compress(b"ab" * 400000)  # a text that is a repetition is the worst to sort

# ---- xz: 40 MB in 6 KB; a dictionary of 4 GiB; what takes long to search; what no encoder writes.
museum["bomb.xz"] = lzma.compress(bytes(40_000_000), preset=1) * 25
museum["empty_streams.xz"] = lzma.compress(b"") * 5000
stream = bytearray(lzma.compress(text))
stream[16] = 40
stream[20:24] = struct.pack("<I", zlib.crc32(stream[12:20]))
museum["huge_dictionary.xz"] = bytes(stream)
museum["wrong_sum.xz"] = lzma.compress(text)[:-40] + bytes(40)
museum["trailing_garbage.xz"] = lzma.compress(text) + b"\xfd7zXZ\0garbage" * 100
museum["two_letters.xz"] = lzma.compress(bytes(97 + chance.randrange(2) for _ in range(300000)), preset=9 | lzma.PRESET_EXTREME)
museum["filtered.xz"] = lzma.compress(text, filters=[{"id": lzma.FILTER_DELTA, "dist": 4}, {"id": lzma.FILTER_LZMA2, "preset": 6}])


# ---- zip
def zipped(members, method=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


def local(name, size, plain, crc=0, flags=0, method=8, extra=b""):
    return struct.pack("<4s5HIIIHH", b"PK\3\4", 45, flags, method, 0, 0, crc, size, plain, len(name), len(extra)) + name + extra


def central(name, size, plain, offset, crc=0):
    return struct.pack("<4s6HIII5HII", b"PK\1\2", 45, 45, 0, 8, 0, 0, crc, size, plain, len(name), 0, 0, 0, 0, 0, offset) + name


def ended(body, entries):
    directory = b"".join(entries)
    count = len(entries) & 0xFFFF
    return body + directory + struct.pack("<4s4HIIH", b"PK\5\6", 0, 0, count, count, len(directory), len(body), 0)


inner = zipped([(f"{i}.bin", bytes(5_000_000)) for i in range(4)])
middle = zipped([(f"{i}.zip", inner) for i in range(16)])
museum["bomb_of_bombs.zip"] = zipped([(f"{i}.zip", middle) for i in range(16)])
kernel = raw_deflate(bytes(3_000_000), 9)
museum["overlap.zip"] = ended(local(b"0", len(kernel), 3_000_000) + kernel, [central(b"%d" % i, len(kernel), 3_000_000, 0) for i in range(3000)])
# David Fifield's: each member begins with a stored block that quotes the next one's header, and goes on with its data.
data, plain, parts, body = kernel, 3_000_000, [], b""
for i in reversed(range(500)):
    header = local(b"%05d" % i, len(data), plain)
    parts.append((i, len(data), plain, header))
    body = header + data
    quote = b"\0" + struct.pack("<HH", len(header), len(header) ^ 0xFFFF)
    data, plain = quote + header + data, plain + len(header)
entries, offset = [], 0
for i, size, plain, header in reversed(parts):
    entries.append(central(b"%05d" % i, size, plain, offset))
    offset += len(header) + 5
museum["quoted_headers.zip"] = ended(body, entries)
huge = struct.pack("<HHQQ", 1, 16, 1 << 63, 1 << 63)
packed = raw_deflate(text)
museum["zip64_lies.zip"] = b"".join(
    local(b"lie", 0xFFFFFFFF, 0xFFFFFFFF, method=method, extra=huge) + packed for method in (8, 0, 8, 99)) + local(b"cut", 0xFFFFFFFF, 0xFFFFFFFF, extra=huge[:9]) + packed
museum["descriptor_lies.zip"] = b"".join(
    local(b"d%d" % i, size, 7, flags=8) + packed + struct.pack("<4sIII", b"PK\7\10", 1, 2**32 - 1, i)
    for i, size in enumerate([0, 1, len(packed) - 1, len(packed) + 1, 2**31, 2**32 - 2]))
museum["no_directory.zip"] = local(b"a", len(packed), len(text)) + packed + local(b"b", len(packed), len(text)) + packed[:2000]
museum["headers_only.zip"] = local(b"x", 2**32 - 2, 1) * 20000
museum["encrypted.zip"] = local(b"e", len(packed), len(text), flags=1) + packed + local(b"name" * 16000, 5, 5, method=0) + b"hello"


# ---- tar
def tar_header(name, size_field, kind=b"0"):
    head = name.ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + size_field.ljust(12, b"\0") + b"00000000000\0" + b" " * 8 + kind
    head = head.ljust(257, b"\0") + b"ustar  \0"
    head = bytearray(head.ljust(512, b"\0"))
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head)


def tar_entry(name, data, kind=b"0"):
    return tar_header(name, b"%011o" % len(data), kind) + data + bytes(-len(data) % 512)


museum["search.tgz"] = gz(b"".join(tar_entry(b"%d.gz" % i, slow) for i in range(200)), 9)
museum["base256.tar"] = b"".join(
    tar_header(b"n", field) + text[:700] for field in
    (b"\xff" * 12, b"\x80" + b"\xff" * 11, b"\x80" + bytes(3) + b"\x7f" + b"\xff" * 7, b"\xff" * 11 + b"\0", b"-0000000001"))
museum["base256_huge.tar"] = tar_header(b"huge", b"\x80\0\0\0" + struct.pack(">Q", 2**55 - 1)) + text
museum["beyond_end.tar"] = tar_entry(b"a", text) + tar_header(b"b", b"77777777777") + text
museum["long_names.tar"] = tar_entry(b"././@LongLink", b"n" * 600 + b"\0", b"L") * 3000 + tar_entry(b"a", text)
museum["huge_long_name.tar"] = tar_header(b"././@LongLink", b"77777777777", b"L") + tar_entry(b"name", b"n" * 1_000_000, b"L") + tar_entry(b"a", text)
museum["pax_lengths.tar"] = b"".join(
    tar_entry(b"pax", records, b"x") + tar_entry(b"a", text[:3000]) for records in
    (b"99999999999999999999999 path=x\n", b"18446744073709551615 size=1\n", b"0 size=1\n", b"1 ", b"27 size=18446744073709551615\n"[:27], b"20 size=-1000000000\n", b"7 size=\n" * 3000, b"9999999 path=" + b"p" * 5000))
museum["sparse_maps.tar"] = tar_header(b"s", b"1000", b"S")[:482] + b"\1" + bytes(29) + (bytes(504) + b"\1" + bytes(7)) * 500
museum["sparse_sum.tar"] = tar_entry(b"s", text, b"S") * 3

# ---- ar and cpio
museum["sizes.ar"] = b"!<arch>\n" + b"".join(
    b"%-16s%-12d%-6d%-6d%-8o%-10s`\n" % (name, 0, 0, 0, 0o644, size) + text[:501] for name, size in
    ((b"//", b"40"), (b"/0", b"501"), (b"/99999999999999", b"501"), (b"/-1", b"501"), (b"#1/9999999", b"501"), (b"#1/20", b"5"), (b"//", b"999999999"), (b"huge/", b"9999999999"), (b"minus", b"-5")))
names = ((2**32 - 1, 0), (0, 2**32 - 1), (5000, 10), (4096, 10), (5, 2**31), (1, 600))
museum["names.cpio"] = b"".join(
    b"070701" + b"".join(b"%08X" % field for field in (1, 0o100644, 0, 0, 1, 0, size, 0, 0, 0, 0, name, 0)) + b"name\0\0" + text[:600]
    for name, size in ((5, 600),) + names)
museum["names.odc.cpio"] = b"".join(
    b"070707" + b"000001" * 2 + b"100644" + b"0" * 24 + b"0" * 11 + b"%06o" % name + b"%011o" % size + b"name\0" + text[:600]
    for name, size in ((5, 600), (0o777777, 600), (5, 0o77777777777)))
museum["binary.cpio"] = struct.pack("<13H", 0o70707, 0, 0, 0o100644, 0, 0, 1, 0, 0, 0, 5, 0xFFFF, 0xFFFF) + b"name\0\0" + text


# ---- ISO 9660: directories that hold themselves and one another, files beyond the end, over directories and over files.
def iso_record(name, block, size, directory=False):
    head = struct.pack("<BBIIII7sBBBHHB", 0, 0, block, 0, size, 0, bytes(7), 2 if directory else 0, 0, 0, 1, 1, len(name)) + name
    head += b"\0" * (len(head) % 2)
    return bytes([len(head)]) + head[1:]


def iso(sectors):
    volume = bytearray(2048)
    volume[0:7] = b"\1CD001\1"
    volume[128:132] = struct.pack("<HH", 2048, 8)
    volume[156:190] = iso_record(b"\0", 18, 4096, True)
    image = bytearray(32768) + volume + b"\xffCD001\1".ljust(2048, b"\0")
    for sector in sectors:
        image += sector.ljust(2048, b"\0")[:2048]
    return bytes(image)


records = [iso_record(b"\0", 18, 4096, True), iso_record(b"\1", 18, 4096, True), iso_record(b"SELF", 18, 4096, True), iso_record(b"NEXT", 20, 2048, True), iso_record(b"FAR", 2**32 - 1, 2**32 - 1), iso_record(b"FARDIR", 2**32 - 1, 2**32 - 1, True)]
files = [iso_record(b"F%d" % i, 21 + i % 7, 2048 * (1 + i % 5) + i) for i in range(40)]
museum["cycles.iso"] = iso([b"".join(records), b"".join(files), b"".join(records[2:] + files[:20])] + [prose(2048) for _ in range(20)])
museum["all_directories.iso"] = iso([b"".join(iso_record(b"%d" % i, 19 + n + i, 1, True) for i in range(40)) for n in range(300)])
museum["no_block_size.iso"] = museum["cycles.iso"].replace(struct.pack("<HH", 2048, 8), bytes(4))


# ---- PNG
def chunk(kind, data, length=None):
    return struct.pack(">I", len(data) if length is None else length) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(*chunks, width=200, height=200):
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) + b"".join(chunks)


image = zlib.compress(b"".join(b"\0" + prose(200) for _ in range(200)), 9)
end = chunk(b"IEND", b"")
museum["huge.png"] = png(chunk(b"IDAT", image), end, width=2**31 - 1, height=2**31 - 1)
museum["lengths.png"] = png(chunk(b"IDAT", image, 2**31 - 1), end)
museum["length_sign.png"] = png(chunk(b"tEXt", text, 2**32 - 1), chunk(b"IDAT", image), end)
museum["no_end.png"] = png(chunk(b"IDAT", image[:9000]))
museum["tiny_idats.png"] = png(*(chunk(b"IDAT", image[i : i + 1]) for i in range(len(image))), *[chunk(b"IDAT", b"")] * 3000, end)
museum["bomb.png"] = png(chunk(b"IDAT", zlib.compress(bytes(70_000_000), 9)), end)
museum["two_images.png"] = png(chunk(b"IDAT", image), chunk(b"tEXt", b"between"), chunk(b"IDAT", image + b"more than an image" * 9), end)


# ---- PDF
def stream(length, data):
    return b"1 0 obj\n<< /Length %d /Filter /FlateDecode >>\nstream\n" % length + data + b"\nendstream\nendobj\n"


page = zlib.compress(text)
museum["lengths.pdf"] = b"%PDF-1.7\n" + b"".join(stream(length, page) for length in (0, 5, 2**31, 2**64, len(page) - 1, len(page) + 99))
museum["stream_in_stream.pdf"] = b"%PDF-1.7\n" + stream(9, zlib.compress(stream(5, zlib.compress(text)) * 3, 0)) + stream(9, page[:3000] + b"stream\n" + page)
museum["streams_unended.pdf"] = b"%PDF-1.7\n" + b"stream\r\nx\x9c" * 40000
museum["streams_empty.pdf"] = b"%PDF-1.7\n" + b"stream\nx\x9c\3\0" * 3000 + bytes(600)

# ---- Mail
envelope = b"From a@b.c Mon Nov 16 02:40:57 2026\n"
head = b"From: a@b.c\nTo: b@c.d\nSubject: s\nMIME-Version: 1.0\nMessage-ID: <1@b.c>\n"
museum["empty.mbox"] = (envelope + b"\n") * 200000
museum["messages.mbox"] = (envelope + head + b"\nhello\n\n") * 5000
museum["almost.mbox"] = envelope + head + b"\n" + b"\n\nFrom a@b.c Mon Nov 16 02:40:57 xx26\n" * 5000


def multipart(boundary):
    return b'Content-Type: multipart/mixed; boundary="' + boundary + b'"\n\n'


encoded = base64.encodebytes(chance.randbytes(20000))
part = b'Content-Type: application/x-x; name="x"\nContent-Transfer-Encoding: base64\n\n'
museum["deep.eml"] = head + b"".join(multipart(b"b%d" % i) + b"--b%d\n" % i for i in range(10000)) + part + encoded + b"".join(b"--b%d--\n" % i for i in reversed(range(10000)))
museum["messages_in_messages.eml"] = head + b"Content-Type: message/rfc822\n\n" * 10000 + part + encoded
prefixes = [b"b" * n for n in range(1, 30)] + [b"b--", b"b-", b"--", b"-", b" b "]
museum["prefixes.eml"] = head + b"".join(multipart(b) + b"--" + b + b"\n" + part + encoded for b in prefixes) + b"".join(b"\n--" + b + e + b"\n" for e in (b"", b"--", b"----") for b in prefixes)
museum["same_boundary.eml"] = head + (multipart(b"b") + b"--b\n") * 3000 + part + encoded + b"--b--\n" * 3000
museum["one_line.eml"] = head + part + base64.b64encode(chance.randbytes(15_000_000)) + b"\n"
museum["padding.eml"] = head + multipart(b"b") + b"".join(
    b"--b\n" + part + encoded[:2000] + middle + encoded[:2000] for middle in
    (b"=\n", b"==\n", b"===\n", b"====", b"AA==\n", b"AAA=AAAA\n", b"A=\nA=\n", b"A===\n", b"QQ==QQ==\n", b"\n\n\n", b"\r", b"\r\n", b" ", b"\0", b"QR==\n", b"QUJ=\n"))
lines = encoded.splitlines()
museum["ragged.eml"] = head + part + b"".join(line[: chance.randint(0, 76)] + chance.choice([b"\n", b"\r\n", b"\r", b"\n\r", b""]) for line in lines * 3)
quoted = b"Content-Transfer-Encoding: quoted-printable\n\n"
pieces = [b"=\n", b"=\r\n", b"=\r", b"\r", b"\n", b"\r\n", b"=3D", b"=3d", b"=0A", b"=0D=0A", b"=", b"==", b"=4", b"=zz", b" \n", b"\t=\n", b"=20\n", b"caf=C3=A9 ", b"\0", b"word "]
museum["quoted.eml"] = head + quoted + b"".join(chance.choices(pieces, k=20000))
museum["quoted_long.eml"] = head + quoted + b"=C3=A9" * 500000
museum["headers.eml"] = head + b"X-Long: " + b";a=" * 50000 + b"\n" + b"Content-Type: multipart/mixed; boundary=" + b"q" * 300 + b"\n" + b"X-F: y\n z\n" * 10000 + b"\n" + encoded
museum["null_in_header.eml"] = head + b"X: \0\n" + part + encoded

# ---- All of them in one another, and damaged copies of each. Those of the largest would only take longer.
small = sorted(item for item in museum.items() if len(item[1]) < 1 << 18)
museum["all.tar"] = b"".join(tar_entry(name.encode(), data) for name, data in small)
museum["all.zip"] = zipped(small)
for name, data in sorted(museum.items()):
    copies = [data]
    if len(data) < 1_000_000:
        copies.append(data[: chance.randrange(len(data))])
        for flips in (1, 20):
            copy = bytearray(data)
            for _ in range(flips):
                copy[chance.randrange(len(copy))] ^= 1 << chance.randrange(8)
            copies.append(bytes(copy))
    for i, copy in enumerate(copies):
        with open(f"museum/{i}.{name}", "wb") as file:
            file.write(copy)
PYTHON

# Of kin itself, in KiB; what it is asked for must end with 0, and before five minutes are over.
bounded() {
  python3 - "$KIN" "$@" >peak 2>trouble <<'PYTHON' || fail "kin $*: $(cat trouble)"
import resource, subprocess, sys
with open("out", "wb") as out, open("err", "wb") as err:
    code = subprocess.run(sys.argv[1:], stdout=out, stderr=err, timeout=300).returncode
assert code == 0, f"exit code {code}"
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(peak)
assert peak < 512 << 10, f"took {peak} KiB of memory"
PYTHON
}
run 0 init --plain
bounded -j 2 backup museum
says "opened"
says "the search for matches takes too long"
bounded -j 2 restore latest --verify --target back
same museum back/museum
bounded check --read-data
echo passed
