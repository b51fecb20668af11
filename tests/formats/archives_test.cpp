// ar, cpio and ISO 9660: archives of real programs, and those that no program here writes.
#include "lib/container/recipe.h"
#include "tests/support/opened_container.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <set>

using namespace kin;
using namespace kin::testing;

namespace {

// Names that each archiver has to do something about.
const std::string kLongName = "a_name_that_is_longer_than_sixteen_characters.txt";

struct ArchiveSample {
  ArchiveSample() {
    run_in(dir, "mkdir -p tree/sub/deeper");
    write_bytes(dir / "tree/text", text);
    write_bytes(dir / "tree/sub/noise", noise);
    write_bytes(dir / "tree/sub/empty", {});
    write_bytes(dir / ("tree/sub/deeper/" + kLongName), odd);
    run_in(dir, "ln tree/text tree/hard && ln -s text tree/soft");
  }

  TempDir dir;
  const Bytes text = text_like(17, 60000), noise = random_bytes(18, 20001), odd = text_like(19, 7777);
};

std::set<std::string> names_in(OpenedContainer& opened) {
  std::set<std::string> names;
  const auto recipe = value_of(open_recipe(opened.objects, *opened.extent));
  RecipeReader parts(*recipe);
  while (const auto part = value_of(parts.next()))
    if (!part->is_literal()) names.insert(part->name);
  return names;
}

void put_little_endian(Bytes& at, std::size_t offset, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) at[offset + i] = static_cast<std::uint8_t>(value >> 8 * i);
}

// A file or directory in an image.
struct IsoEntry {
  std::string name;
  std::uint32_t block, size;
  std::uint8_t flags = 0;
};

Bytes iso_record(const IsoEntry& entry) {
  Bytes record(33 + entry.name.size() + (entry.name.size() % 2 == 0 ? 1 : 0), 0);
  record[0] = static_cast<std::uint8_t>(record.size());
  put_little_endian(record, 2, entry.block, 4);
  put_little_endian(record, 10, entry.size, 4);
  record[25] = entry.flags;
  record[32] = static_cast<std::uint8_t>(entry.name.size());
  std::copy(entry.name.begin(), entry.name.end(), record.begin() + 33);
  return record;
}

constexpr std::size_t kSector = 2048;
constexpr std::uint32_t kRootBlock = 18, kFirstBlock = 19;

// An image whose root directory has these entries, and then `blocks` of content from kFirstBlock on.
Bytes small_iso(const std::vector<IsoEntry>& entries, const Bytes& content) {
  Bytes image(kFirstBlock * kSector, 0);
  const auto put = [&](std::size_t at, const Bytes& bytes) {
    std::copy(bytes.begin(), bytes.end(), image.begin() + static_cast<std::ptrdiff_t>(at));
  };
  const IsoEntry root{std::string(1, 0), kRootBlock, kSector, 2};
  put(16 * kSector, {1, 'C', 'D', '0', '0', '1', 1});
  put_little_endian(image, 16 * kSector + 128, kSector, 2);
  put(16 * kSector + 156, iso_record(root));
  put(17 * kSector, {255, 'C', 'D', '0', '0', '1', 1});
  std::size_t at = kRootBlock * kSector;
  put(at, iso_record(root));
  at += image[at];
  for (const IsoEntry& entry : entries) {
    put(at, iso_record(entry));
    at += image[at];
  }
  append(image, content);
  return image;
}

// The oldest form, as a machine of this byte order writes it.
void add_binary_cpio(Bytes& out, const std::string& name, const Bytes& content, bool big_endian) {
  const std::array<std::size_t, 13> words = {070707,
                                             1,
                                             2,
                                             0100644,
                                             0,
                                             0,
                                             1,
                                             0,
                                             1,
                                             2,
                                             name.size() + 1,
                                             content.size() >> 16,
                                             content.size() & 0xffff};
  for (const std::size_t word : words) {
    const auto high = static_cast<std::uint8_t>(word >> 8), low = static_cast<std::uint8_t>(word);
    out.push_back(big_endian ? high : low);
    out.push_back(big_endian ? low : high);
  }
  append(out, as_bytes(name));
  out.resize(out.size() + 1 + (name.size() + 1) % 2, 0);
  append(out, content);
  out.resize(out.size() + content.size() % 2, 0);
}

}  // namespace

TEST_CASE("ar, cpio and ISO archives of real programs open and come back exactly", "[containers][archives]") {
  const ArchiveSample sample;
  struct Row {
    const char* command;  // makes "a"
    std::string name;     // of the member with the long name
    const char* tool = "true";
  };
  const std::string in_tree = "sub/deeper/" + kLongName;
  const std::string flat = "tree/text tree/sub/noise tree/sub/empty tree/sub/deeper/*";
  const std::string ar = "ar rc a " + flat, ar_symbols = "ar rcs a " + flat;
  const std::string bsd_ar = "bsdtar --format=arbsd -cf a " + flat;
  const std::string deb =
      "mkdir -p deb/DEBIAN && cp -a tree deb && printf 'Package: a\\nVersion: 1\\nArchitecture: all\\n"
      "Maintainer: a <a@b>\\nDescription: a\\n' >deb/DEBIAN/control && ";
  const std::string gzip_deb = deb + "dpkg-deb -Zgzip --build deb a",
                    xz_deb = deb + "dpkg-deb -Zxz --build deb a";
  const std::string find = "cd tree && find . -depth | sed 's|^\\./||' | sort | ";
  const std::string newc = find + "cpio -oH newc >../a", crc = find + "cpio -oH crc >../a",
                    odc = find + "cpio -oH odc >../a", bin = find + "cpio -oH bin >../a",
                    initramfs = "(" + find + "cpio -oH newc) >a; head -c 1000 /dev/zero >>a;(" + find +
                                "cpio -oH newc | gzip) >>a";
  const Row rows[] = {
      {ar.c_str(), kLongName},
      {ar_symbols.c_str(), kLongName},
      {bsd_ar.c_str(), kLongName, "bsdtar"},
      {gzip_deb.c_str(), "", "dpkg-deb"},
      {xz_deb.c_str(), "", "dpkg-deb"},
      {newc.c_str(), in_tree, "cpio"},
      {crc.c_str(), in_tree, "cpio"},
      {odc.c_str(), in_tree, "cpio"},
      {bin.c_str(), in_tree, "cpio"},
      {initramfs.c_str(), in_tree, "cpio"},
      {"genisoimage -quiet -R -o a tree", in_tree, "genisoimage"},
      {"genisoimage -quiet -R -J -o a tree 2>&1", in_tree, "genisoimage"},
      {"genisoimage -quiet -l -o a tree 2>&1", "", "genisoimage"},
      {"genisoimage -quiet -R -udf -o a tree 2>&1", in_tree, "genisoimage"},
      {"xorriso -as mkisofs -quiet -R -J -o a tree 2>&1", in_tree, "xorriso"},
      {"bsdtar --format=iso9660 -cf a -C tree . ", in_tree, "bsdtar"},
  };
  for (const Row& row : rows) {
    INFO(row.command);
    if (!has_tool(row.tool)) {
      WARN(row.tool << " is missing: left out: " << row.command);
      continue;
    }
    run_in(sample.dir, std::string("rm -rf a b deb; (") + row.command + ") 2>&1");
    const Bytes bytes = read_bytes(sample.dir / "a");
    OpenedContainer opened = open_container(bytes);
    check_exact(opened, bytes);
    CHECK(has_object(opened, sample.text));
    CHECK(has_object(opened, sample.noise));
    CHECK(has_object(opened, sample.odd));
    if (!row.name.empty()) CHECK(names_in(opened).contains(row.name));
  }
}

TEST_CASE("binary cpio archives of either byte order open", "[containers][archives]") {
  const Bytes one = text_like(20, 70001), two = text_like(21, 500);
  for (const bool big_endian : {false, true}) {
    Bytes bytes;
    add_binary_cpio(bytes, "one", one, big_endian);
    add_binary_cpio(bytes, "other", two, big_endian);
    add_binary_cpio(bytes, "TRAILER!!!", {}, big_endian);
    bytes.resize(bytes.size() + 300, 0);
    OpenedContainer opened = open_container(bytes);
    check_exact(opened, bytes);
    CHECK(has_object(opened, one));
    CHECK(has_object(opened, two));
    CHECK(names_in(opened) == std::set<std::string>{"one", "other"});
  }
}

TEST_CASE("the files of an image are members, wherever its directory says that they are",
          "[containers][archives]") {
  const Bytes one = text_like(22, 5000), two = text_like(23, 3000), three = text_like(24, 9000);
  Bytes content = one;
  content.resize(3 * kSector, 0);
  append(content, two);
  content.resize(5 * kSector, 0);
  append(content, three);
  const auto entry = [](const char* name, std::uint32_t block, const Bytes& file) {
    return IsoEntry{name, kFirstBlock + block, static_cast<std::uint32_t>(file.size())};
  };
  const IsoEntry first = entry("ONE.;1", 0, one), second = entry("TWO.;1", 3, two),
                 third = entry("THREE.;1", 5, three);

  SECTION("in order, the last one up to the image's end") {
    const Bytes image = small_iso({first, second, third}, content);
    OpenedContainer opened = open_container(image);
    check_exact(opened, image);
    CHECK((has_object(opened, one) && has_object(opened, two) && has_object(opened, three)));
    CHECK(names_in(opened) == std::set<std::string>{"", "ONE.", "TWO.", "THREE."});
  }
  SECTION("in any order, and under several names") {
    const Bytes image = small_iso({third, first, second, first, third}, content);
    OpenedContainer opened = open_container(image);
    check_exact(opened, image);
    CHECK((has_object(opened, one) && has_object(opened, two) && has_object(opened, three)));
  }
  SECTION("in several extents") {
    IsoEntry start = entry("ONE.;1", 0, one);
    start.size = 2 * kSector;
    start.flags = 0x80;
    IsoEntry rest = start;
    rest.block += 2;
    rest.size = static_cast<std::uint32_t>(one.size() - 2 * kSector);
    rest.flags = 0;
    const Bytes image = small_iso({start, rest, second, third}, content);
    OpenedContainer opened = open_container(image);
    check_exact(opened, image);
    CHECK((has_object(opened, one) && has_object(opened, two) && has_object(opened, three)));
  }
  SECTION("one within another is part of it") {
    IsoEntry within = entry("WITHIN.;1", 1, two);
    const Bytes image = small_iso({first, within, second, third}, content);
    OpenedContainer opened = open_container(image);
    check_exact(opened, image);
    CHECK((has_object(opened, one) && has_object(opened, two) && has_object(opened, three)));
    CHECK_FALSE(names_in(opened).contains("WITHIN."));
  }
  SECTION("before the directory and beyond the end there are none") {
    const IsoEntry behind{"BEHIND.;1", 2, 4000}, beyond{"BEYOND.;1", 0xffffffff, 0xffffffff};
    const IsoEntry itself{"ITSELF", kRootBlock, kSector, 2};
    const Bytes image = small_iso({behind, beyond, itself, second}, content);
    OpenedContainer opened = open_container(image);
    check_exact(opened, image);
    CHECK(has_object(opened, two));
    CHECK(names_in(opened) == std::set<std::string>{"", "TWO."});
  }
  SECTION("directories that are too long to remember are not read") {
    const IsoEntry huge{"HUGE", kFirstBlock, 0xfffff800, 2};
    const Bytes image = small_iso({huge, second}, content);
    OpenedContainer opened = open_container(image);
    check_exact(opened, image);
    CHECK(has_object(opened, two));
  }
}

TEST_CASE("an image that is cut or changed anywhere is closed or exact", "[containers][archives]") {
  const Bytes content = text_like(25, 3 * kSector);
  const Bytes image = small_iso(
      {{"ONE.;1", kFirstBlock, 1500}, {"SUB", kFirstBlock + 1, kSector, 2}, {"TWO.;1", kFirstBlock + 2, 900}},
      content);
  for (std::size_t size = 16 * kSector; size <= image.size(); size += 61)
    check_closed_or_exact(Bytes(image.begin(), image.begin() + static_cast<std::ptrdiff_t>(size)));
  const auto change = [&](std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at < end; ++at)
      for (const std::uint8_t flip : {0x01, 0x80, 0xff}) {
        Bytes changed = image;
        changed[at] ^= flip;
        check_closed_or_exact(changed);
      }
  };
  change(16 * kSector, 16 * kSector + 8);
  change(16 * kSector + 120, 16 * kSector + 190);
  change(17 * kSector, 17 * kSector + 8);
  change(kRootBlock * kSector, kRootBlock * kSector + 180);
}
