// ContainerOpener: takes a container apart, members within members, into objects and a recipe. One instance
// per thread.
//
// The objects of a container that fits into memory are handed out once the recipe has been played and gave
// back the same bytes; so formats may guess at first where that is quicker (ContainerLimits::proven_later).
// Those of a larger one are handed out as they come, each coded member rebuilt and compared by its format,
// and all parts' lengths added up; if it turns out not to open, they were for nothing, and do no harm.
#pragma once

#include "lib/container/content_source.h"
#include "lib/engine/container_counts.h"
#include "lib/engine/segmenter.h"

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace kin {

class ContainerOpener {
 public:
  // The segmenter cuts members, and is free again when open() returns. It must outlive this, as the store.
  ContainerOpener(BlockStore& store, const Formats& formats, Segmenter& segmenter, std::stop_token stop = {},
                  const SearchLimits& search_limits = {})
      : store_(store),
        formats_(formats),
        segmenter_(segmenter),
        stop_(std::move(stop)),
        search_limits_(search_limits) {}

  // Nothing if no format claims it.
  const ContainerFormat* detect(ByteView head) const;

  // All of `file` as one extent; `emit` gets its objects. Nothing: it stays closed, and `file` was read in
  // part. Errors are those of `file`, and cancelled if `emit` gave false or soon after a stop. `counts`, if
  // given, gets this container and those within it; if it stays closed, only itself. `before`: the
  // container's earlier version, whose members are the previous ones of these.
  Result<std::optional<Extent>> open(ByteSource& file, const Segmenter::Emit& emit,
                                     ContainerCounts* counts = nullptr,
                                     const std::optional<Extent>& before = {});

 private:
  // With `unproven`, formats may guess; it is set where nothing was handed out since a guess was wrong, or
  // could not be proven.
  Result<std::optional<Extent>> open_once(const ContainerFormat& format, ByteSource& file,
                                          const Segmenter::Emit& emit, ContainerCounts* counts,
                                          const std::optional<Extent>& before, bool* unproven);

  BlockStore& store_;
  const Formats formats_;
  Segmenter& segmenter_;
  const std::stop_token stop_;
  const SearchLimits search_limits_;
};

}  // namespace kin
