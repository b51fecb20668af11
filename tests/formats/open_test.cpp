// Archives of real programs: they open, their members are what the files are, and they come back bit for bit.
#include "tests/support/opened_container.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

using namespace kin;
using namespace kin::testing;

namespace {

// A directory with text, noise, an empty file, a long name and a hole.
struct Sample {
  Sample() {
    run_in(dir, "mkdir -p tree/sub/" + std::string(120, 'd'));
    write_bytes(dir / "tree/text", text);
    write_bytes(dir / "tree/sub/noise", noise);
    write_bytes(dir / "tree/sub/empty", {});
    write_bytes(dir / ("tree/sub/" + std::string(120, 'd') + "/" + std::string(90, 'n')), text);
    run_in(dir, "ln tree/text tree/hard && ln -s text tree/soft");
    run_in(dir,
           "truncate -s 3M tree/sparse && printf x | dd of=tree/sparse bs=1 seek=1500000 conv=notrunc 2>&1");
  }

  TempDir dir;
  const Bytes text = text_like(7, 60000), noise = random_bytes(8, 20000);
};

}  // namespace

// Levels 6 and 9 agree on the first thousands of its tokens, which are literals.
TEST_CASE("a gzip file whose header tells the wrong level opens and comes back exactly", "[containers]") {
  const TempDir dir;
  Random random(3);
  Bytes content;
  for (int i = 0; i < 12'000; ++i) content.push_back(static_cast<std::uint8_t>(' ' + random.below(64)));
  append(content, text_like(9, 100'000));
  write_bytes(dir / "content", content);
  run_in(dir, "gzip -6n <content >a");
  Bytes bytes = value_of(read_file(dir / "a", 1 << 20));
  bytes[8] = 2;
  OpenedContainer opened = open_container(bytes);
  check_exact(opened, bytes);
  CHECK(opened.recipes == 1);
}

TEST_CASE("archives of real programs open and come back exactly", "[containers]") {
  const Sample sample;
  struct Row {
    const char* command;  // makes "a"
    bool text, noise;     // those members are there as the loose files are
    const char* tool = "true";
  };
  const std::string stream_zip =
      "python3 -c \"import zipfile,sys,os\n"
      "z=zipfile.ZipFile(sys.stdout.buffer,'w',zipfile.ZIP_DEFLATED)\n"
      "z.write('tree/text'); z.write('tree/sub/noise'); z.write('tree/sub/empty'); z.close()\" | cat >a";
  const Row rows[] = {
      {"gzip -c tree/text >a", true, false},
      {"gzip -1 -c tree/text >a", true, false},
      {"gzip -9n <tree/text >a", true, false},
      {"gzip --rsyncable -c tree/text >a", true, false},
      {"(gzip -c tree/text; gzip -9c tree/sub/noise) >a", true, true},
      {"(gzip -c tree/text; echo trailing) >a", true, false},
      {"(gzip -c tree/text; head -c 30000 /dev/zero) >a", true, false},
      {"bzip2 -c tree/text >a", true, false, "bzip2"},
      {"bzip2 -1c tree/sub/noise >a", false, true, "bzip2"},
      {"(bzip2 -c tree/text; echo trailing) >a", true, false, "bzip2"},
      {"bzip2 </dev/null >a", false, false, "bzip2"},
      {"tar -cf - tree | bzip2 >a", true, true, "bzip2"},
      {"tar -cf - tree | bzip2 -1 >a", true, true, "bzip2"},
      {"tar -cf b tree && pbzip2 -p2 -b1 -c b >a", true, true, "pbzip2"},
      {"tar -cf b tree && lbzip2 -n1 -c b >a", true, true, "lbzip2"},
      {"tar -cf b tree && 7z a -bd -tbzip2 a.bz2 b && mv a.bz2 a", true, true, "7z"},
      {"tar -cf b tree && 7z a -bd -tbzip2 -mx=9 a.bz2 b && mv a.bz2 a", true, true, "7z"},
      {"python3 -c \"import bz2;open('a','wb').write(bz2.compress(open('tree/text','rb').read(),3))\"", true,
       false},
      {"bzip2 -c tree/text >b.bz2 && zip -q a.zip b.bz2 && mv a.zip a", true, false, "bzip2"},
      {"xz -c tree/text >a", true, false, "xz"},
      {"xz -0c tree/sub/noise >a", false, true, "xz"},
      {"(xz -9ec tree/text; head -c 8 /dev/zero; xz -1 -C sha256 -c tree/text; echo trailing) >a", false,
       false, "xz"},
      {"xz </dev/null >a", false, false, "xz"},
      {"tar -cf - tree | xz -6 >a", true, true, "xz"},
      {"tar -cf - tree | xz -3 -C crc32 >a", true, true, "xz"},
      {"tar -cf - tree | xz -T2 --block-size=50000 >a", true, true, "xz"},
      {"tar -cf - tree | xz --lzma2=dict=128KiB,nice=32,mf=bt3 -C none >a", true, true, "xz"},
      {"python3 -c \"import lzma;open('a','wb').write(lzma.compress(open('tree/text','rb').read()))\"", true,
       false},
      {"xz -c tree/text >b.xz && zip -q a.zip b.xz && mv a.zip a", true, false, "xz"},
      {"tar --format=ustar -cf a --exclude=nnn* --exclude=ddd* tree", true, true},
      {"tar --format=gnu -cf a tree", true, true},
      {"tar --format=gnu -Scf a tree", true, true},
      {"tar --format=posix -cf a tree", true, true},
      {"tar --format=posix -Scf a tree", true, true},
      {"tar --format=posix -S --sparse-version=0.0 -cf a tree", true, true},
      {"tar --format=v7 -cf a --exclude=nnn* --exclude=ddd* tree", true, true},
      {"tar --format=oldgnu -Scf a tree", true, true},
      {"tar -czf a tree", true, true},
      {"tar -cf a tree && tar -rf a tree/text", true, true},
      {"bsdtar --format=pax -cf a tree", true, true, "bsdtar"},
      {"bsdtar --format=zip -cf a tree", true, true, "bsdtar"},
      {"zip -qr a.zip tree && mv a.zip a", true, true},
      {"zip -qr0 a.zip tree && mv a.zip a", true, true},
      {"zip -qr1 a.zip tree && mv a.zip a", true, true},
      {"zip -qr -fd a.zip tree && mv a.zip a", true, true},
      {"zip -qr -fz a.zip tree && mv a.zip a", true, true},
      {"zip -q - tree/text tree/sub/noise | cat >a", true, true},
      {"zip -qr -P secret a.zip tree && mv a.zip a", false, false},
      {"7z a -bd -tzip a.zip tree && mv a.zip a", true, true, "7z"},
      {"7z a -bd -tzip -mem=AES256 -psecret a.zip tree && mv a.zip a", false, false, "7z"},
      {"7z a -bd -tzip -mm=LZMA a.zip tree && mv a.zip a", false, false, "7z"},
      {stream_zip.c_str(), true, false},
      {"zip -qr b.zip tree && tar -czf a b.zip", true, true},
      {"tar -czf b.tgz tree && zip -q0 a.zip b.tgz && mv a.zip a", true, true},
  };
  for (const Row& row : rows) {
    INFO(row.command);
    if (!has_tool(row.tool)) {
      WARN(row.tool << " is missing: left out: " << row.command);
      continue;
    }
    run_in(sample.dir, std::string("rm -f a a.zip a.bz2 b b.bz2 b.zip b.tgz; ") + row.command);
    const Bytes bytes = read_bytes(sample.dir / "a");
    OpenedContainer opened = open_container(bytes);
    check_exact(opened, bytes);
    CHECK(has_object(opened, sample.text) == row.text);
    if (row.noise) CHECK(has_object(opened, sample.noise));
  }
}

TEST_CASE("what is no container stays closed", "[containers]") {
  for (const Bytes& bytes : {Bytes(), Bytes{'P', 'K', 3, 4}, Bytes{0x1f, 0x8b, 8, 0}, text_like(1, 5000),
                             random_bytes(2, 5000), Bytes(5000, 0)})
    CHECK_FALSE(open_container(bytes).extent);
}

TEST_CASE("a gzip file whose stream cannot be opened stays closed", "[containers]") {
  Bytes bytes = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
  append(bytes, random_bytes(3, 4000));
  CHECK_FALSE(open_container(bytes).extent);
}

TEST_CASE("containers within containers are opened to the eighth", "[containers]") {
  TempDir dir;
  const Bytes text = text_like(4, 3000);
  write_bytes(dir / "a", text);
  for (int depth = 1; depth <= 12; ++depth) {
    run_in(dir, "gzip -n <a >b && mv b a");
    const Bytes bytes = read_bytes(dir / "a");
    OpenedContainer opened = open_container(bytes);
    check_exact(opened, bytes);
    CHECK(opened.recipes == static_cast<std::size_t>(std::min(depth, kMostContainerDepth)));
    CHECK(has_object(opened, text) == (depth <= kMostContainerDepth));
  }
}

TEST_CASE("a container larger than what is held in memory comes back exactly", "[containers]") {
  TempDir dir;
  // Two members larger than the buffers, one of them a container itself, and a small one behind them.
  const Bytes large = compressible_bytes(5, 48 << 20), noise = random_bytes(6, 9 << 20);
  write_bytes(dir / "large", large);
  write_bytes(dir / "noise", noise);
  write_bytes(dir / "small", text_like(9, 5000));
  run_in(dir, "gzip -1c noise >noise.gz && tar -cf - large noise.gz small | gzip -1 >a");
  const Bytes bytes = read_bytes(dir / "a");
  OpenedContainer opened = open_container(bytes);
  check_exact(opened, bytes);
  CHECK(has_object(opened, text_like(9, 5000)));
  CHECK(opened.recipes == 3);

  // Cut in the midst it cannot be opened, though much of it was.
  CHECK_FALSE(
      open_container(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2)))
          .extent);
}

TEST_CASE("a large member that is refused at its front stays closed alone", "[containers][thorough]") {
  TempDir dir;
  // Of two, one has a filter that is not known.
  const Bytes noise = random_bytes(6, 9 << 20);
  write_bytes(dir / "noise", noise);
  write_bytes(dir / "small", text_like(9, 5000));
  run_in(dir,
         "xz -0c noise >noise.xz && xz -c --arm --lzma2=preset=0 noise >other.xz && tar -cf a noise.xz "
         "other.xz small");
  const Bytes bytes = read_bytes(dir / "a");
  OpenedContainer opened = open_container(bytes);
  check_exact(opened, bytes);
  CHECK(has_object(opened, text_like(9, 5000)));
  CHECK(opened.recipes == 2);
}

TEST_CASE("what fails beneath a member is not taken for a member that is refused", "[containers][thorough]") {
  // Zeros that unpack to more than is let through, where xz looks far ahead for its size; then what does not
  // compress, so that more would be let through again.
  TempDir dir;
  run_in(dir,
         "python3 -c \"import gzip,lzma,random\n"
         "start=lzma.compress(b'')[:12]\n"
         "end=random.Random(1).randbytes(10<<20)\n"
         "zeros=bytes((64<<20)+(64<<10)+8-len(start))\n"
         "open('a','wb').write(gzip.compress(start+zeros+end,6))\"");
  const Bytes bytes = read_bytes(dir / "a");
  OpenedContainer opened = open_container(bytes);
  if (opened.extent) check_exact(opened, bytes);
}

TEST_CASE("a tar with many members has a recipe in pieces, and comes back exactly", "[containers]") {
  TempDir dir;
  run_in(dir,
         "python3 -c \"import tarfile,io\n"
         "t=tarfile.open('a','w')\n"
         "for i in range(12000):\n"
         "  d=(str(i)*40).encode(); f=tarfile.TarInfo('some/directory/file%d'%i); f.size=len(d); "
         "f.mtime=i*7919; "
         "t.addfile(f,io.BytesIO(d))\n"
         "t.close()\"");
  const Bytes bytes = read_bytes(dir / "a");
  OpenedContainer opened = open_container(bytes);
  check_exact(opened, bytes);
  std::size_t data = 0;
  require_ok(for_each_object(opened.objects, {*opened.extent}, [&](const Extent& extent) -> Result<bool> {
    data += extent.kind == Extent::Kind::data;
    return true;
  }));
  CHECK(data >= 12000);
}

TEST_CASE("stored members whose size only their end tells are shared with loose files", "[containers]") {
  // As web servers and Python write zips to a pipe: method 0, sizes behind the member.
  Bytes zip;
  const Bytes first = random_bytes(31, 300'000), second = random_bytes(32, 200'000);
  for (const Bytes* const content : {&first, &second}) {
    Bytes header = {'P', 'K', 3, 4, 20, 0, 8, 0, 0, 0};
    header.resize(30, 0);
    header[26] = 1;
    append(zip, header);
    zip.push_back('n');
    append(zip, *content);
    Bytes descriptor = {'P', 'K', 7, 8};
    descriptor.resize(16, 0);
    append(zip, descriptor);
  }
  OpenedContainer opened = open_container(zip);
  check_exact(opened, zip);
  CHECK(has_object(opened, first));
  CHECK(has_object(opened, second));
}
