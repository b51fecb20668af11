#include "cmd/container_tree.h"
#include "cmd/object_origins.h"
#include "lib/container/content_source.h"
#include "store/object_storage.h"

#include <functional>
#include <set>

namespace kin::cmd {
namespace {

constexpr std::size_t kShownPieces = 20;

struct ExplainOptions {
  store::SnapshotFilter filter;
  std::string place, path;
};

// A part of the file: an object, or a hole; or an object that a container needs.
struct Piece {
  Extent extent;
  std::uint64_t offset = 0;  // of the container, where it is in one
  bool in_container = false;
  bool repeated = false;  // the file has this object before
  store::StorageChain chain = {};

  bool is_hole() const { return extent.kind == Extent::Kind::hole; }
  // Once for each object, however often the file has it.
  std::uint64_t stored() const { return repeated || chain.links.empty() ? 0 : chain.links.front().share(); }
};

struct ExplainTotals {
  std::uint64_t pieces = 0, objects = 0, content_bytes = 0, holes = 0, hole_bytes = 0;
  std::uint64_t stored_bytes = 0, lists = 0, list_bytes = 0;
  bool about = false;         // some of it is a share of a group
  std::set<BlockRef> blocks;  // that have to be decoded for the file
  std::uint64_t decoded_bytes = 0;
  std::size_t most_deltas = 0;
  bool damaged = false;
};

// Told in two passes, since bases are looked for in between: the first counts, and the second tells of one
// piece after the other. So what is held is an id or two for each object, and not all that is told of it.
class Explanation {
 public:
  Explanation(Context& context, store::Repository& repository, const TreePlace& place)
      : context_(context),
        repository_(repository),
        place_(place),
        chains_(repository),
        tells_all_(context.options.json || context.options.verbose > 0) {}

  Result<void> gather() {
    KIN_TRY(for_each_extent(
        repository_, place_.node.content, [&](const Extent& extent, std::uint64_t offset) -> Result<void> {
          if (extent.kind != Extent::Kind::container) return {};
          KIN_TRY_ASSIGN(ContainerTree tree, container_tree(context_, repository_, extent));
          containers_.push_back({offset, std::move(tree)});
          return {};
        }));
    KIN_TRY(for_each_piece([&](Piece piece) { return add(std::move(piece)); },
                           [&](const ObjectId& list) { count_list(list); }));
    KIN_TRY_ASSIGN(origins_,
                   find_origins(context_, repository_, place_.snapshot, std::move(bases_), totals_.damaged));
    return {};
  }

  bool damaged() const { return totals_.damaged; }
  Result<void> print();
  Result<void> write_json(JsonWriter& out);

 private:
  struct Container {
    std::uint64_t offset = 0;
    ContainerTree tree;
  };
  using VisitPiece = std::function<Result<void>(Piece piece)>;

  Result<void> for_each_piece(const VisitPiece& visit,
                              const std::function<void(const ObjectId& list)>& visit_list);
  Result<void> for_each_told(const VisitPiece& visit);
  Result<void> add(Piece piece);
  void count_list(const ObjectId& list);
  void print_piece(const Piece& piece) const;
  std::string origin_text(const ObjectId& base) const;
  Json piece_json(const Piece& piece) const;
  static Json link_json(const store::StoredObject& link);

  Context& context_;
  store::Repository& repository_;
  const TreePlace& place_;
  store::StorageChains chains_;
  const bool tells_all_;  // and not only of the first
  std::vector<Piece> first_;
  std::vector<Container> containers_;
  ExplainTotals totals_;
  std::unordered_set<ObjectId, ObjectIdHash> bases_;  // of the pieces that are told of
  Origins origins_;
};

void Explanation::count_list(const ObjectId& list) {
  // If it is in no index, loading it fails next, and says so.
  const auto where = repository_.find_location(list);
  if (where && *where)
    totals_.list_bytes += store::share_of((*where)->size, (*where)->range.size, (*where)->content_size);
  ++totals_.lists;
}

// In the file's order.
Result<void> Explanation::for_each_piece(const VisitPiece& visit,
                                         const std::function<void(const ObjectId& list)>& visit_list) {
  std::unordered_set<ObjectId, ObjectIdHash> seen;
  const auto look_at = [&](Piece piece) -> Result<void> {
    if (context_.stop().stop_requested()) return Error(ErrorCode::cancelled, "interrupted");
    KIN_TRY(context_.still_heard());
    if (!piece.is_hole()) {
      piece.repeated = !seen.insert(piece.extent.id).second;
      KIN_TRY_ASSIGN(piece.chain, chains_.of(piece.extent.id));
    }
    return visit(std::move(piece));
  };
  const auto look_into = [&](const Extent& container, std::uint64_t offset) {
    return for_each_object(repository_, {container}, [&](const Extent& extent) -> Result<bool> {
      if (extent.kind == Extent::Kind::list) return visit_list(extent.id), true;
      Extent object = extent;
      if (extent.kind == Extent::Kind::container) {
        // The extent has the container's size; what is stored is the recipe.
        KIN_TRY_ASSIGN(const auto where, repository_.find_location(extent.id));
        object = {Extent::Kind::data, where ? where->size : 0, extent.id};
      }
      KIN_TRY(look_at(Piece{object, offset, true}));
      return true;
    });
  };
  return for_each_extent(
      repository_, place_.node.content,
      [&](const Extent& extent, std::uint64_t offset) {
        return extent.kind == Extent::Kind::container ? look_into(extent, offset)
                                                      : look_at(Piece{extent, offset});
      },
      [&](const ObjectId& list) { return visit_list(list), true; });
}

Result<void> Explanation::for_each_told(const VisitPiece& visit) {
  if (tells_all_) return for_each_piece(visit, [](const ObjectId&) {});
  for (const Piece& piece : first_) KIN_TRY(visit(piece));
  return {};
}

Result<void> Explanation::add(Piece piece) {
  const Extent& extent = piece.extent;
  ++totals_.pieces;
  if (piece.is_hole()) {
    ++totals_.holes;
    totals_.hole_bytes += extent.size;
  } else {
    ++totals_.objects;
    totals_.content_bytes += extent.size;
    if (piece.chain.damage && !piece.repeated)
      context_.warn(fmt::format("cannot tell all of {}, at byte {}: {}", printable(place_.path), piece.offset,
                                piece.chain.damage->message()));
    if (piece.chain.damage) totals_.damaged = true;
    totals_.stored_bytes += piece.stored();
    std::size_t deltas = 0;
    for (const store::StoredObject& link : piece.chain.links) {
      if (totals_.blocks.insert(link.block).second) totals_.decoded_bytes += link.block.content_size;
      if (link.base) ++deltas;
    }
    totals_.most_deltas = std::max(totals_.most_deltas, deltas);
    if (!piece.chain.links.empty() && piece.chain.links.front().block_objects > 1) totals_.about = true;
  }
  if (!tells_all_ && first_.size() == kShownPieces) return {};
  for (const store::StoredObject& link : piece.chain.links)
    if (link.base) bases_.insert(*link.base);
  if (!tells_all_) first_.push_back(std::move(piece));
  return {};
}

// ---- Text

std::string row(std::string_view object, std::string_view size, std::string_view features,
                std::string_view stored_as, std::string_view takes, std::string_view block) {
  std::string out =
      fmt::format("{:<15} {:<13} {:<9} {:<20} {:<18} {}", object, size, features, stored_as, takes, block);
  out.erase(out.find_last_not_of(' ') + 1);
  return out;
}

std::string row(const std::string& name, const std::string& features, const store::StoredObject& link,
                bool repeated) {
  const bool several = link.block_objects > 1;
  return row(
      name, human_bytes(link.size), features,
      fmt::format("{}{}, {}", name_of(link.form()), several ? fmt::format(" of {}", link.block_objects) : "",
                  store::codec_name(link.codec)),
      repeated ? "nothing more" : (several ? "about " : "") + human_bytes(link.share()),
      fmt::format("{} at {}", link.block.pack.short_hex(), link.block.offset));
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return fmt::format("{:.2f} %", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string Explanation::origin_text(const ObjectId& base) const {
  const auto found = origins_.find(base);
  if (found == origins_.end()) return "from a file that no snapshot has";
  const Origin& origin = found->second;
  if (origin.snapshot == place_.snapshot.id && origin.path == place_.path) return "from this file itself";
  return fmt::format("from {} in {}", printable(origin.path),
                     origin.snapshot == place_.snapshot.id ? std::string("the same snapshot")
                                                           : "snapshot " + origin.snapshot.short_hex());
}

void Explanation::print_piece(const Piece& piece) const {
  if (piece.is_hole()) {
    context_.print_always(row("hole", human_bytes(piece.extent.size), "", "not stored", "nothing", ""));
    return;
  }
  const std::vector<store::StoredObject>& links = piece.chain.links;
  if (links.empty())
    context_.print_always(
        row(piece.extent.id.short_hex(), human_bytes(piece.extent.size), "", "cannot be read", "", ""));
  for (std::size_t i = 0; i < links.size(); ++i) {
    const store::StoredObject& link = links[i];
    if (i == 0) {
      context_.print_always(row(link.id.short_hex(), "", link, piece.repeated));
      if (piece.repeated) return;
      continue;
    }
    const Sketch& above = links[i - 1].features;
    context_.print_always(row(
        "  base " + link.id.short_hex(),
        fmt::format("{} of {}", store::matching_features(above, link.features), above.size()), link, false));
    context_.print_always(fmt::format("{:<15} {}", "", origin_text(link.id)));
  }
  if (!piece.chain.damage || links.empty()) return;
  const ObjectId& missing = *links.back().base;
  context_.print_always(row("  base " + missing.short_hex(), "", "", "cannot be read", "", ""));
  context_.print_always(fmt::format("{:<15} {}", "", origin_text(missing)));
}

Result<void> Explanation::print() {
  const auto line = [&](const char* what, const std::string& value) {
    context_.print_always(fmt::format("{:<11}{}", what, value));
  };
  const std::uint64_t size = place_.node.size;
  line("File:", printable(place_.path));
  line("Snapshot:",
       fmt::format("{} of {}", place_.snapshot.id.short_hex(), local_time(place_.snapshot.snapshot.time)));
  if (totals_.pieces == 0) {
    line("Size:", human_bytes(size) + ": an empty file takes nothing besides its entry in the tree");
    return {};
  }
  std::uint64_t members = 0;
  for (const Container& container : containers_) members += container.tree.count;
  line(
      "Size:",
      fmt::format("{}{} in {}{}", human_bytes(size),
                  containers_.empty() ? ""
                                      : fmt::format(", opened as {}: {}", printable(containers_[0].tree.type),
                                                    counted(members, "member")),
                  counted(totals_.objects, "object"),
                  totals_.holes == 0 ? ""
                                     : fmt::format(" and {} of together {}", counted(totals_.holes, "hole"),
                                                   human_bytes(totals_.hole_bytes))));
  for (const Container& container : containers_) {
    context_.print_always("");
    KIN_TRY(print_tree(context_, repository_, container.tree,
                       context_.options.verbose > 0 ? SIZE_MAX : kShownPieces));
  }
  context_.print_always("");
  context_.print_always(row("object", "size", "features", "stored as", "takes", "pack, byte"));
  bool delta = false, about = false, repeated = false;
  std::uint64_t told = 0;
  KIN_TRY(for_each_told([&](const Piece& piece) -> Result<void> {
    print_piece(piece);
    ++told;
    repeated = repeated || piece.repeated;
    for (const store::StoredObject& link : piece.chain.links) {
      delta = delta || link.base;
      about = about || link.block_objects > 1;
    }
    return {};
  }));
  if (told < totals_.pieces)
    context_.print_always(fmt::format("and {} more (-v lists all)", grouped(totals_.pieces - told)));
  context_.print_always("");
  if (totals_.content_bytes > 0)
    line("Stored:", fmt::format("{}{} for {} of content ({})", totals_.about ? "about " : "",
                                human_bytes(totals_.stored_bytes), human_bytes(totals_.content_bytes),
                                percent(totals_.stored_bytes, totals_.content_bytes)));
  if (totals_.lists > 0)
    line("", fmt::format("and about {} for {} of its objects", human_bytes(totals_.list_bytes),
                         counted(totals_.lists, "list")));
  if (totals_.damaged) line("", "Something cannot be read; so there may be more to it.");
  if (!totals_.blocks.empty())
    line("To read:", fmt::format("{} with {} of content to decode{}", counted(totals_.blocks.size(), "block"),
                                 human_bytes(totals_.decoded_bytes),
                                 totals_.most_deltas == 0
                                     ? ""
                                     : "; at most " + counted(totals_.most_deltas, "delta") + " in a row"));
  if (delta || about || repeated) context_.print_always("");
  if (delta) {
    line("delta", "only the difference from the base, which is the next line, is stored");
    line("features", "how many of its features an object shares with its base: how alike they are");
  }
  if (about) line("about", "a group of objects is compressed as one; this is the object's part of it");
  if (repeated) line("more", "the file has this object before, and it is stored once");
  return {};
}

// ---- JSON

Json Explanation::link_json(const store::StoredObject& link) {
  return {{"id", link.id.hex()},
          {"size", link.size},
          {"stored_size", link.share()},
          {"form", name_of(link.form())},
          {"encoding", store::codec_name(link.codec)},
          {"features", link.features.size()},
          {"block",
           {{"pack", link.block.pack.hex()},
            {"offset", link.block.offset},
            {"stored_size", link.block.stored_size},
            {"content_size", link.block.content_size},
            {"objects", link.block_objects}}}};
}

Json Explanation::piece_json(const Piece& piece) const {
  const std::vector<store::StoredObject>& links = piece.chain.links;
  Json out{{"id", piece.extent.id.hex()}};
  if (!links.empty()) out = link_json(links.front());
  out.update({{"size", piece.extent.size}, {"stored_size", piece.stored()}});
  if (!piece.in_container) out["offset"] = piece.offset;
  if (piece.repeated) out["repeated"] = true;
  if (piece.chain.damage) out["damage"] = piece.chain.damage->message();
  const auto set_origin = [&](Json& base, const ObjectId& id) {
    const auto origin = origins_.find(id);
    if (origin == origins_.end()) return;
    base["snapshot"] = origin->second.snapshot.hex();
    set_path(base, "path", origin->second.path);
  };
  Json bases = Json::array();
  std::uint64_t decoded = links.empty() ? 0 : links.front().block.content_size;
  for (std::size_t i = 1; i < links.size(); ++i) {
    Json base = link_json(links[i]);
    base["matching_features"] = store::matching_features(links[i - 1].features, links[i].features);
    set_origin(base, links[i].id);
    decoded += links[i].block.content_size;
    bases.push_back(std::move(base));
  }
  if (piece.chain.damage && !links.empty() && links.back().base) {
    Json base{{"id", links.back().base->hex()}, {"damage", piece.chain.damage->message()}};
    set_origin(base, *links.back().base);
    bases.push_back(std::move(base));
  }
  out["chain"] = {{"depth", bases.size()}, {"bytes", decoded}};
  out["bases"] = std::move(bases);
  return out;
}

Result<void> Explanation::write_json(JsonWriter& out) {
  Json fields{{"message_type", "explanation"},
              {"snapshot", place_.snapshot.id.hex()},
              {"size", place_.node.size},
              {"total",
               {{"objects", totals_.objects},
                {"content_size", totals_.content_bytes},
                {"hole_size", totals_.hole_bytes},
                {"stored_size", totals_.stored_bytes},
                {"lists", totals_.lists},
                {"lists_stored_size", totals_.list_bytes},
                {"blocks_to_decode", totals_.blocks.size()},
                {"bytes_to_decode", totals_.decoded_bytes},
                {"depth", totals_.most_deltas}}}};
  set_path(fields, "path", place_.path);
  out.fields(fields);
  if (!containers_.empty()) {
    out.begin_array("containers");
    for (const Container& container : containers_) {
      out.begin_object();
      out.fields({{"offset", container.offset}, {"size", container.tree.container.size}});
      KIN_TRY(write_tree(context_, repository_, container.tree, out));
      out.end();
    }
    out.end();
  }
  out.begin_array("holes");
  KIN_TRY(for_each_extent(repository_, place_.node.content,
                          [&](const Extent& extent, std::uint64_t offset) -> Result<void> {
                            if (extent.kind == Extent::Kind::hole)
                              out.value({{"offset", offset}, {"size", extent.size}});
                            return {};
                          }));
  out.end();
  out.begin_array("objects");
  KIN_TRY(for_each_told([&](const Piece& piece) -> Result<void> {
    if (!piece.is_hole()) out.value(piece_json(piece));
    return {};
  }));
  out.end();
  return {};
}

// ---- The command

// "[SNAPSHOT:]PATH", or SNAPSHOT[:PATH] and PATH as for dump. No snapshot starts with a '/'.
std::string place_text(const ExplainOptions& options) {
  if (!options.path.empty())
    return options.place + (options.place.find(':') == std::string::npos ? ":" : "/") + options.path;
  const bool path_only = options.place.starts_with('/') || options.place.find(':') == std::string::npos;
  return (path_only ? "latest:" : "") + options.place;
}

Result<void> tell(Context& context, Explanation& explanation) {
  KIN_TRY(explanation.gather());
  if (!context.options.json) return explanation.print();
  JsonWriter out(context.raw_out());
  KIN_TRY(explanation.write_json(out));
  out.end();
  return {};
}

Result<ExitCode> run_explain(Context& context, const ExplainOptions& options) {
  KIN_TRY_ASSIGN(const auto repository, open_repository(context));
  KIN_TRY_ASSIGN(const TreePlace place, find_place(*repository, place_text(options), options.filter));
  if (place.node.type == NodeType::directory)
    return Error(
        ErrorCode::invalid_argument,
        fmt::format("{} is a directory, and explain is about files; kin ls lists them, and kin stats "
                    "--details counts how all are stored",
                    place.path.empty() ? "this" : printable(place.path)));
  if (place.node.type != NodeType::file)
    return Error(ErrorCode::invalid_argument,
                 fmt::format("{} is a {}, and explain is about files: it has no content",
                             printable(place.path), name_of(place.node.type)));
  Explanation explanation(context, *repository, place);
  if (auto told = tell(context, explanation); !told) {
    const ErrorCode code = told.error().code();
    const bool is_of_file = code != ErrorCode::cancelled && code != ErrorCode::io;
    return is_of_file ? std::move(told).error().context(printable(place.path)) : std::move(told).error();
  }
  return explanation.damaged() ? ExitCode::corrupt : ExitCode::ok;
}

Action define_explain(CLI::App& app) {
  auto options = std::make_shared<ExplainOptions>();
  add_filter_options(app, options->filter);
  app.add_option("PLACE", options->place,
                 "a file as [SNAPSHOT:]PATH, of the latest snapshot if none is named; or SNAPSHOT PATH")
      ->required();
  app.add_option("PATH", options->path, "the file, if PLACE is a snapshot");
  return [options](Context& context) { return run_explain(context, *options); };
}

}  // namespace

extern const Command kExplain{"explain", "tell how a file is stored", define_explain};

}  // namespace kin::cmd
