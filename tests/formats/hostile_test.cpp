// Containers and recipes that are damaged, or made to do harm: a container stays closed or comes back
// exactly, a recipe gives its bytes or an error, and nothing takes memory or time without end.
#include "lib/container/recipe.h"
#include "tests/formats/deflate/hostile_streams.h"
#include "tests/support/opened_container.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>
#include <fmt/core.h>

using namespace kin;
using namespace kin::testing;

namespace {

ObjectId id(std::uint8_t n) {
  ObjectId out;
  out.bytes.fill(n);
  return out;
}

// Small containers of each format, with deflate and nesting in them.
std::vector<Bytes> small_containers() {
  TempDir dir;
  write_bytes(dir / "one", text_like(1, 300));
  write_bytes(dir / "two", text_like(2, 90));
  write_bytes(dir / "noise", random_bytes(3, 400));
  run_in(dir,
         "gzip -n <one >a && (gzip -n <one; gzip -n <two) >b && zip -qX c.zip one two && zip -qX - one two | "
         "cat >d &&"
         "gzip -n <two >two.gz && tar --format=ustar -b1 -cf e two.gz && zip -q0X f.zip two.gz &&"
         "ar rcD g one two.gz && ls one two.gz | cpio --quiet -oH newc | head -c 900 >h &&"
         "ls one two | cpio --quiet -oH odc | head -c 700 >i && ls one two | cpio --quiet -oH bin | head -c "
         "600 >j && (bzip2 <one; bzip2 <two; echo behind) >k && bzip2 <e >l &&"
         "(xz -0 <one; xz -1 <two; echo behind) >n && xz -0 --block-size=300 -T2 <e >o &&"
         "envelope='From a Mon May  6 12:00:00 2024\nReceived: x\nFrom: a\nSubject: b\n' &&"
         "(printf \"${envelope}Content-Transfer-Encoding: base64\n\n\"; base64 -w 76 noise;"
         " printf \"\n$envelope\nx\n\n\") >m");
  std::vector<Bytes> out;
  for (const char* name : {"a", "b", "c.zip", "d", "e", "f.zip", "g", "h", "i", "j", "k", "l", "m", "n", "o"})
    out.push_back(read_bytes(dir / name));
  return out;
}

// A container extent of this size, whose recipe has these parts.
Extent forge(LooseObjects& objects, std::uint8_t n, const std::vector<RecipePart>& parts, std::uint64_t size,
             const Digest& digest = {}) {
  WireWriter out;
  encode_recipe_start("forged", out);
  for (const RecipePart& part : parts) encode_recipe_part(part, out);
  encode_recipe_end({size, digest}, out);
  objects.objects[id(n)] = encode_recipe_object({out.take(), {}});
  return {Extent::Kind::container, size, id(n)};
}

RecipePart literal(std::string_view text) {
  RecipePart part;
  append(part.literal, as_bytes(text));
  return part;
}

RecipePart member(std::vector<Extent> content) {
  RecipePart part;
  part.content = std::move(content);
  return part;
}

bool is_expected(const Error& error) {
  return error.code() == ErrorCode::corrupt || error.code() == ErrorCode::unsupported;
}

}  // namespace

TEST_CASE("a container cut at any length is closed or exact", "[containers][hostile][thorough]") {
  for (const Bytes& whole : small_containers())
    for (std::size_t size = 0; size <= whole.size(); ++size)
      check_closed_or_exact(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
}

// Under sanitizers each takes ten times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint8_t kFlips[] = {0xff};
#else
constexpr std::uint8_t kFlips[] = {0x01, 0x80, 0xff};
#endif

TEST_CASE("a container with any byte changed is closed or exact", "[containers][hostile][thorough]") {
  for (const Bytes& whole : small_containers())
    for (std::size_t at = 0; at < whole.size(); ++at)
      for (const std::uint8_t flip : kFlips) {
        Bytes changed = whole;
        changed[at] ^= flip;
        check_closed_or_exact(changed);
      }
}

TEST_CASE("containers that are cut and spliced at random are closed or exact", "[containers][hostile]") {
  const std::vector<Bytes> all = small_containers();
  Random random(11);
  for (int i = 0; i < 1000; ++i) {
    Bytes bytes;
    for (std::uint64_t pieces = 1 + random.below(4); pieces > 0; --pieces) {
      const Bytes& from = all[random.below(all.size())];
      const std::size_t begin = random.below(2) == 0 ? 0 : random.below(from.size());
      append(bytes, ByteView(from).subspan(begin, 1 + random.below(from.size() - begin)));
    }
    check_closed_or_exact(bytes);
  }
}

TEST_CASE("what unpacks to a thousand times its size stays closed", "[containers][hostile][thorough]") {
  TempDir dir;
  run_in(dir,
         "head -c 80M /dev/zero >z && gzip -9 <z >a && gzip -9 <a >b && zip -q9 c.zip z && bzip2 <z >d"
         "&& xz <z >e");
  for (const char* name : {"a", "b", "c.zip", "d", "e"}) {
    INFO(name);
    const Bytes bytes = read_bytes(dir / name);
    REQUIRE(bytes.size() < 500'000);
    OpenedContainer opened = open_container(bytes);
    // The inner one of two stays closed, since it is the one that unpacks to too much.
    if (std::string_view(name) == "b") {
      check_exact(opened, bytes);
      CHECK(opened.recipes == 1);
    } else {
      CHECK_FALSE(opened.extent);
    }
  }
}

TEST_CASE("a recipe that gets too long is given up before it fills the repository", "[containers][hostile]") {
  // Each member of two bytes has the same name of 4,000.
  const auto header = [](std::string name, std::size_t size) {
    return fmt::format("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", name, 0, 0, 0, 644, size);
  };
  std::string text = "!<arch>\n" + header("//", 4002) + std::string(4000, 'n') + "/\n";
  for (int i = 0; i < 20'000; ++i)
    text += header("/0", 2) + static_cast<char>(i % 251) + static_cast<char>(i / 251);
  const ByteView bytes = as_bytes(text);
  OpenedContainer opened = open_container(Bytes(bytes.begin(), bytes.end()));
  CHECK_FALSE(opened.extent);
  CHECK(opened.objects.objects.empty());
}

TEST_CASE("very many members of a few bytes are not an object each", "[containers][hostile]") {
  std::string text = "!<arch>\n";
  for (int i = 0; i < 20'000; ++i)
    text += fmt::format("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n{:06}", "x/", 0, 0, 0, 644, 6, i);
  const Bytes bytes(text.begin(), text.end());
  OpenedContainer opened = open_container(bytes);
  REQUIRE(opened.extent);
  CHECK(opened.objects.objects.size() < 1000);
  check_closed_or_exact(bytes);
}

TEST_CASE("a zip of headers within headers does not take for ever", "[containers][hostile]") {
  // Every header promises a deflate stream of unknown length, and all of them go on in the same stored
  // blocks.
  Bytes header = {'P', 'K', 3, 4, 20, 0, 8, 0, 8, 0};
  header.resize(30, 0);
  Bytes unit = header;
  const std::size_t block = 60;  // a stored block that holds the next header and the next block's own head
  unit.insert(unit.end(), {0, static_cast<std::uint8_t>(block), 0, static_cast<std::uint8_t>(~block), 0xff});
  Bytes bytes;
  while (bytes.size() < (4 << 20)) append(bytes, unit);
  bytes.push_back(0xff);  // no block
  check_closed_or_exact(bytes);
}

namespace {

// Opens it as a backup does.
ContainerCounts counts_of(const Bytes& bytes, const SearchLimits& limits) {
  Segmenter segmenter(any_store());
  ContainerOpener opener(any_store(), formats::all(), segmenter, {}, limits);
  MemorySource source(bytes);
  ContainerCounts counts;
  value_of(opener.open(
      source, [](const NewObject&) { return true; }, &counts));
  return counts;
}

Bytes as_gzip(ByteView stream) {
  Bytes out = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff};
  append(out, stream);
  append(out, Bytes(8));  // sums, which nobody compares
  return out;
}

}  // namespace

TEST_CASE("a small file of streams that are slow to search stays closed, and says why",
          "[containers][hostile]") {
  const std::pair<std::string, std::string> reason("gzip", "the search for matches takes too long");
  const Bytes slow = as_gzip(two_letters(1, 30'000));
  // One may be; but there are many in the space of a few. With the limits that a backup has, it would be
  // fifty.
  const SearchLimits limits{1 << 27, 512};
  CHECK(counts_of(slow, limits).closed[reason] == 0);
  TempDir dir;
  for (int i = 0; i < 100; ++i) write_bytes(dir / fmt::format("{}.gz", i), slow);
  run_in(dir,
         "tar --format=ustar -cf many.tar *.gz && gzip -9n <many.tar >many.tgz && test $(wc -c <many.tgz) "
         "-lt 30000");
  const Bytes many = read_bytes(dir / "many.tgz");
  ContainerCounts counts = counts_of(many, limits);
  CHECK(counts.closed[reason] > 90);
  CHECK(counts.closed[reason] < 100);
  // What they are in opens all the same.
  CHECK(counts.opened["tar"] == 1);
  CHECK(counts.opened["gzip"] >= 1);
  // Nor does it take more in the company of what is large.
  run_in(dir, "head -c 2000000 /dev/urandom >noise && tar --format=ustar -cf all.tar noise many.tgz");
  counts = counts_of(read_bytes(dir / "all.tar"), limits);
  CHECK(counts.closed[reason] > 90);
  CHECK(counts.opened["tar"] == 2);
  counts = counts_of(as_gzip(far_zeros(50'000)), limits);
  CHECK(counts.closed == std::map<std::pair<std::string, std::string>, std::uint64_t>{{reason, 1}});
}

namespace {

class CountedMembers : public PartSink {
 public:
  Result<void> literal(ByteView) override { return {}; }
  Result<void> member(std::string_view name, ByteSource& bytes) override {
    if (!name.empty()) ++named;
    KIN_TRY(read_to_end(bytes));
    return {};
  }
  Result<void> coded_member(CodingId, std::string_view, MemberSource&) override { return {}; }

  std::size_t named = 0;
};

Bytes iso_record(char kind, std::uint32_t block, std::uint32_t size, bool directory) {
  Bytes out(34);
  out[0] = 34;
  for (std::size_t i = 0; i < 4; ++i) {
    out[2 + i] = static_cast<std::uint8_t>(block >> (8 * i));
    out[10 + i] = static_cast<std::uint8_t>(size >> (8 * i));
  }
  out[25] = directory ? 2 : 0;
  out[32] = 1;
  out[33] = static_cast<std::uint8_t>(kind);
  return out;
}

// Directories that say they have one byte each, while each is a sector of records: of the next directory, and
// of files of one byte behind them all. Blocks are of one byte, so that files share sectors.
Bytes iso_of_directories(std::uint32_t directories, std::uint32_t files) {
  constexpr std::uint32_t kBytes = 2048, kFirst = 18 * kBytes;
  Bytes image(16 * kBytes);
  Bytes volume = {1, 'C', 'D', '0', '0', '1', 1};
  volume.resize(128);
  volume.insert(volume.end(), {1, 0});
  volume.resize(156);
  append(volume, iso_record('\0', kFirst, 1, true));
  volume.resize(kBytes);
  append(image, volume);
  Bytes end = {255, 'C', 'D', '0', '0', '1', 1};
  end.resize(kBytes);
  append(image, end);
  for (std::uint32_t i = 0; i < directories; ++i) {
    Bytes sector = iso_record('D', kFirst + (i + 1) * kBytes, 1, i + 1 < directories);
    for (std::uint32_t n = 0; n < files; ++n)
      append(sector, iso_record('F', kFirst + (directories + 1) * kBytes + i * files + n, 1, false));
    sector.resize(kBytes);
    append(image, sector);
  }
  image.resize(image.size() + kBytes + directories * files, 'x');
  return image;
}

}  // namespace

TEST_CASE("an ISO image of endless directories makes nobody remember all their files",
          "[containers][hostile]") {
  constexpr std::uint32_t kMostSectors = 4096, kFiles = 50;
  const auto named = [&](std::uint32_t directories) {
    MemorySource source(iso_of_directories(directories, kFiles));
    PeekSource in(source);
    CountedMembers members;
    require_ok(formats::kIso.open(in, members, {}));
    return members.named;
  };
  CHECK(named(100) == 100 * kFiles + 1);  // the last one's next is a file
  CHECK(named(kMostSectors) == kMostSectors * kFiles + 1);
  CHECK(named(kMostSectors + 1000) == kMostSectors * kFiles);
  const Bytes image = iso_of_directories(200, kFiles);
  OpenedContainer opened = open_container(image);
  check_exact(opened, image);
}

TEST_CASE("a recipe with any byte changed gives an error or the right bytes", "[recipe][hostile]") {
  for (const Bytes& whole : small_containers()) {
    OpenedContainer opened = open_container(whole);
    REQUIRE(opened.extent);
    for (auto& [changed_id, object] : opened.objects.objects) {
      const Bytes before = object;
      for (std::size_t at = 0; at < before.size(); ++at) {
        object[at] ^= static_cast<std::uint8_t>(1 + at % 255);
        const auto back = rebuilt(opened.objects, *opened.extent);
        if (back && *back != whole) FAIL("wrong bytes, and no error");
        if (!back && !is_expected(back.error())) FAIL(back.error().message());
        // Who only looks what there is must come to an end too.
        (void)for_each_object(opened.objects, {*opened.extent},
                              [](const Extent&) -> Result<bool> { return true; });
        object[at] = before[at];
      }
      for (std::size_t size = 0; size < before.size(); ++size) {
        object.resize(size);
        CHECK_FALSE(rebuilt(opened.objects, *opened.extent));
        object = before;
      }
    }
  }
}

TEST_CASE("a container whose object is missing is corrupt", "[recipe][hostile]") {
  OpenedContainer opened = open_container(small_containers()[4]);
  const auto all = opened.objects.objects;
  for (const auto& [missing, bytes] : all) {
    opened.objects.objects.erase(missing);
    CHECK(code_of(rebuilt(opened.objects, *opened.extent)) == ErrorCode::corrupt);
    opened.objects.objects.emplace(missing, bytes);
  }
}

TEST_CASE("a recipe that leads to itself is corrupt, and soon so", "[recipe][hostile]") {
  LooseObjects objects;
  const Extent self{Extent::Kind::container, 100, id(1)};
  forge(objects, 1, {literal("x"), member({self}), member({self})}, 100);
  CHECK(code_of(rebuilt(objects, self)) == ErrorCode::corrupt);
  std::uint64_t visits = 0;
  (void)for_each_object(objects, {self}, [&](const Extent&) -> Result<bool> { return ++visits, true; });
  CHECK(visits < 100);
}

TEST_CASE("recipes of recipes that double at each level are visited once each", "[recipe][hostile]") {
  LooseObjects objects;
  objects.objects[id(100)] = Bytes(1000, 'x');
  Extent inner{Extent::Kind::data, 1000, id(100)};
  for (std::uint8_t depth = 8; depth >= 1; --depth)
    inner = forge(objects, depth, std::vector<RecipePart>(400, member({inner})), inner.size * 400);
  std::uint64_t visits = 0;
  require_ok(
      for_each_object(objects, {inner}, [&](const Extent&) -> Result<bool> { return ++visits, true; }));
  CHECK(visits < 10'000);
  CHECK(objects.loads < 100);
}

TEST_CASE("a recipe of wrong sizes or of a wrong digest is corrupt", "[recipe][hostile]") {
  LooseObjects objects;
  objects.objects[id(9)] = {'a', 'b', 'c'};
  const Extent data{Extent::Kind::data, 3, id(9)};
  const Bytes whole = {'x', 'a', 'b', 'c'};
  Extent good = forge(objects, 1, {literal("x"), member({data})}, 4, hash(whole));
  CHECK((value_of(rebuilt(objects, good)) == whole));
  const auto fails = [&](const Extent& extent) {
    CHECK(code_of(rebuilt(objects, extent)) == ErrorCode::corrupt);
  };
  fails(forge(objects, 2, {literal("x"), member({data})}, 4));
  fails(forge(objects, 2, {literal("x"), member({data})}, 5, hash(whole)));
  fails(forge(objects, 2, {literal("x"), member({data})}, 3, hash(whole)));
  fails(forge(objects, 2, {literal("x"), member({{Extent::Kind::data, 4, id(9)}})}, 5, hash(whole)));
  good.size = 5;
  fails(good);
  good.size = 3;
  fails(good);
}

TEST_CASE("a recipe's type is as long as it may be, and no longer", "[recipe][hostile]") {
  LooseObjects objects;
  const Bytes whole = {'x'};
  const auto forged = [&](std::size_t type_size) {
    WireWriter out;
    out.u8(1);
    out.text(std::string(type_size, 't'));
    encode_recipe_part(literal("x"), out);
    encode_recipe_end({1, hash(whole)}, out);
    objects.objects[id(1)] = encode_recipe_object({out.take(), {}});
    return rebuilt(objects, {Extent::Kind::container, 1, id(1)});
  };
  CHECK((value_of(forged(0)) == whole));
  CHECK((value_of(forged(kMostTypeName)) == whole));
  CHECK(code_of(forged(kMostTypeName + 1)) == ErrorCode::corrupt);
  objects.objects[id(1)].resize(20);  // within the type
  CHECK(code_of(rebuilt(objects, {Extent::Kind::container, 1, id(1)})) == ErrorCode::corrupt);
}

TEST_CASE("holes and exabytes in a forged recipe end at the container's size", "[recipe][hostile]") {
  LooseObjects objects;
  const Extent hole{Extent::Kind::hole, std::uint64_t{1} << 60, {}};
  CHECK(code_of(rebuilt(objects, forge(objects, 1, {member({hole})}, 1 << 20))) == ErrorCode::corrupt);
  RecipePart coded = member({hole});
  coded.coding = CodingId::deflate;
  CHECK(code_of(rebuilt(objects, forge(objects, 2, {coded}, 1 << 20))) == ErrorCode::corrupt);
  coded.corrections = {hole};
  CHECK(code_of(rebuilt(objects, forge(objects, 3, {coded}, 1 << 20))) == ErrorCode::corrupt);
  coded.coding = static_cast<CodingId>(200);
  CHECK(code_of(rebuilt(objects, forge(objects, 4, {coded}, 1 << 20))) == ErrorCode::unsupported);
}

TEST_CASE("a recipe much longer than its container is corrupt", "[recipe][hostile]") {
  LooseObjects objects;
  RecipePart coded;
  coded.coding = CodingId::deflate;
  coded.name = std::string(100, 'n');
  const Extent extent = forge(objects, 1, std::vector<RecipePart>(1000, coded), 10);
  CHECK(code_of(rebuilt(objects, extent)) == ErrorCode::corrupt);
  CHECK(code_of(for_each_object(objects, {extent}, [](const Extent&) -> Result<bool> { return true; })) ==
        ErrorCode::corrupt);
}

TEST_CASE("the digest is compared also when the buffer ends with the container", "[recipe][hostile]") {
  LooseObjects objects;
  const Extent extent = forge(objects, 1, {literal("abcd")}, 4);
  ContentSource source(objects, formats::all(), {extent});
  Bytes buffer(4);
  CHECK(value_of(source.read(buffer)) == 4);
  CHECK(code_of(source.read(buffer)) == ErrorCode::corrupt);
}

TEST_CASE("members that unpack to more than kin would store are refused by who reads them",
          "[recipe][hostile]") {
  TempDir dir;
  run_in(dir, "head -c 30M /dev/zero | gzip -n9 >z");
  const Bytes zeros = read_bytes(dir / "z");
  OpenedContainer one = open_container(zeros);
  check_exact(one, zeros);
  std::vector<RecipePart> parts;
  const auto recipe = value_of(open_recipe(one.objects, *one.extent));
  for (RecipeReader reader(*recipe);;) {
    const auto part = value_of(reader.next());
    if (!part) break;
    parts.push_back(*part);
  }
  std::vector<RecipePart> thrice;
  Bytes whole;
  for (int i = 0; i < 3; ++i) {
    thrice.insert(thrice.end(), parts.begin(), parts.end());
    append(whole, zeros);
  }
  CHECK(code_of(rebuilt(one.objects, forge(one.objects, 1, thrice, whole.size(), hash(whole)))) ==
        ErrorCode::corrupt);
  CHECK_FALSE(open_container(whole).extent);
}

TEST_CASE("a recipe of lists of the same lists ends, however large its container claims to be",
          "[recipe][hostile]") {
  LooseObjects objects;
  objects.objects[id(50)] = Bytes(4096, 1);
  Extent list{Extent::Kind::data, 4096, id(50)};
  for (std::uint8_t n = 51; n < 54; ++n) {
    const auto store = [&](ObjectKind, Bytes bytes) -> Result<ObjectId> {
      objects.objects[id(n)] = std::move(bytes);
      return id(n);
    };
    list = value_of(fold_extents(std::vector<Extent>(kListExtents, list), store)).at(0);
  }
  objects.objects[id(1)] = encode_recipe_object({{}, {list}});
  const Extent container{Extent::Kind::container, std::uint64_t{1} << 60, id(1)};
  CHECK(code_of(for_each_object(objects, {container}, [](const Extent&) -> Result<bool> { return true; })) ==
        ErrorCode::corrupt);
}

TEST_CASE("a container whose opening is asked to stop ends with that, and nothing of it is handed on",
          "[containers]") {
  // The request comes with the last bytes of the file: all of the search is still to be done.
  class Stopping : public ByteSource {
   public:
    Stopping(Bytes bytes, std::stop_source stop) : source_(std::move(bytes)), stop_(std::move(stop)) {}
    Result<std::size_t> read(std::span<std::uint8_t> into) override {
      auto got = source_.read(into);
      if (got && *got < into.size()) stop_.request_stop();
      return got;
    }

   private:
    MemorySource source_;
    std::stop_source stop_;
  };
  for (const Bytes& bytes : small_containers()) {
    std::stop_source stop;
    Stopping source(bytes, stop);
    Segmenter segmenter(any_store());
    ContainerOpener opener(any_store(), formats::all(), segmenter, stop.get_token());
    ContainerCounts counts;
    int emitted = 0;
    const auto opened = opener.open(
        source, [&](const NewObject&) { return ++emitted > 0; }, &counts);
    CHECK(code_of(opened) == ErrorCode::cancelled);
    CHECK(emitted == 0);
    CHECK(counts.opened.empty());
    CHECK(counts.closed.empty());
  }
}

TEST_CASE("of a search budget nothing is left after a stop, at any depth", "[containers]") {
  std::stop_source stop;
  SearchBudget file(SearchLimits(), stop.get_token());
  SearchBudget member(SearchLimits(), &file), deeper(SearchLimits(), &member);
  CHECK(deeper.left() > 0);
  stop.request_stop();
  CHECK(file.left() == 0);
  CHECK(member.left() == 0);
  CHECK(deeper.left() == 0);
}
