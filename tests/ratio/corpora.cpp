#include "tests/ratio/corpora.h"

#include "lib/base/file.h"
#include "tests/support/edits.h"
#include "tests/support/random_bytes.h"

#include <fmt/core.h>

#include <algorithm>

namespace kin::testing {
namespace {

Bytes slice(ByteView bytes, std::size_t offset, std::size_t size) {
  const ByteView part = bytes.subspan(offset, std::min(size, bytes.size() - offset));
  return Bytes(part.begin(), part.end());
}

// Large files and small ones, as a source tree has them.
Files project(const Files& texts) {
  Files out;
  for (const auto& [name, text] : texts) {
    out[name] = text;
    for (std::size_t at = 0; at < text.size(); at += 5000)
      out[fmt::format("{}-{:02}", name, at / 5000)] = slice(text, at, 5000);
  }
  return out;
}

// Of all files the part that a release or a day's work changes.
void work_on(Files& files, Random& random, std::uint64_t one_in) {
  for (auto& [name, content] : files)
    if (random.below(one_in) == 0)
      content = edit(std::move(content), random, 1 + static_cast<int>(random.below(5)));
}

// Releases of a project, unpacked beside each other.
Corpus releases(const Files& texts) {
  Random random(1);
  Files release = project(texts), all;
  for (int i = 0; i < 6; ++i) {
    for (const auto& [name, content] : release) all[fmt::format("release{}/{}", i, name)] = content;
    work_on(release, random, 3);
  }
  return {"releases", {all}};
}

// One directory, backed up day after day.
Corpus history(const Files& texts) {
  Random random(2);
  Corpus out{"history", {}};
  Files files = texts;
  for (int day = 0; day < 8; ++day) {
    out.backups.push_back(files);
    work_on(files, random, 2);
  }
  return out;
}

// Small messages with much the same headers; every third quotes an earlier one.
Corpus mail(const Files& texts) {
  Random random(3);
  std::vector<const Bytes*> sources;
  for (const auto& [name, text] : texts) sources.push_back(&text);
  std::vector<Bytes> bodies;
  Files files;
  for (int i = 0; i < 400; ++i) {
    // One after the other: the order of a call's arguments is the compiler's choice.
    const std::uint64_t queue_id = random.next() & 0xff'ffff'ffff;
    const std::uint64_t message_id = random.next();
    std::string message = fmt::format(
        "Return-Path: <list-bounces@lists.example.org>\n"
        "Received: from mail{}.example.org (mail{}.example.org [192.0.2.{}])\n"
        "\tby mx.example.net (Postfix) with ESMTP id {:010X}\n"
        "\tfor <someone@example.net>; Mon, {} Mar 2002 10:{:02}:{:02} +0000 (GMT)\n"
        "Message-Id: <2002030{}.{:016x}@mail.example.org>\n"
        "Mime-Version: 1.0\nContent-Type: text/plain; charset=us-ascii\n"
        "List-Unsubscribe: <mailto:list-request@lists.example.org?subject=unsubscribe>\n\n",
        i % 7, i % 7, i % 251, queue_id, 1 + i / 100, i % 60, i * 7 % 60, i % 9, message_id);
    if (i % 3 == 2)
      for (const std::uint8_t byte : bodies[random.below(bodies.size())]) {
        if (byte == '\n') message += "\n>";
        if (byte != '\n') message += static_cast<char>(byte);
      }
    const Bytes& source = *sources[random.below(sources.size())];
    const std::size_t size = 400 + random.below(2600);
    Bytes body = slice(source, random.below(source.size() - size), size);
    message += as_text(body);
    bodies.push_back(std::move(body));
    const ByteView bytes = as_bytes(message);
    files[fmt::format("{:04}", i)] = Bytes(bytes.begin(), bytes.end());
  }
  return {"mail", {files}};
}

// A file of several segments, of which a little changes: a database, a disk image.
Corpus large() {
  Random random(4);
  Bytes content;
  for (std::uint64_t i = 0; i < 24; ++i) {
    append(content, random_bytes(100 + i, 40'000));
    append(content, text_like(200 + i, 60'000));
    append(content, compressible_bytes(300 + i, 25'000));
  }
  Corpus out{"large", {}};
  for (int day = 0; day < 3; ++day) {
    out.backups.push_back({{"image", content}});
    content = edit(std::move(content), random, 12);
  }
  return out;
}

// Nothing has kin here.
Corpus strangers() {
  Files files;
  for (std::uint64_t i = 0; i < 12; ++i) {
    files[fmt::format("noise{:02}", i)] = random_bytes(400 + i, 500 + 9000 * i);
    files[fmt::format("text{:02}", i)] = text_like(500 + i, 800 + 30'000 * i);
    files[fmt::format("repeats{:02}", i)] = compressible_bytes(600 + i, 2000 + 20'000 * i);
  }
  return {"strangers", {files}};
}

}  // namespace

Result<std::vector<Corpus>> make_corpora(const std::string& texts) {
  Files files;
  for (const char* name : {"backup", "bench", "cli", "format", "repository"}) {
    KIN_TRY_ASSIGN(files[name], read_file(texts + "/" + name + ".txt", 1 << 20));
  }
  return std::vector<Corpus>{releases(files), history(files), mail(files), large(), strangers()};
}

}  // namespace kin::testing
