#include "cmd/json_writer.h"

#include <catch2/catch.hpp>

#include <sstream>

namespace kin::cmd {

TEST_CASE("a document that is written as it goes is what it would be at once", "[json_writer]") {
  using Json = nlohmann::json;
  std::ostringstream out;
  JsonWriter writer(out);
  writer.fields({{"message_type", "x"}, {"count", 3}, {"none", nullptr}});
  writer.begin_array("empty");
  writer.end();
  writer.begin_array("parts");
  writer.value({{"a", 1}});
  writer.begin_object();
  writer.begin_array("within");
  writer.value("one");
  writer.value(2);
  writer.end();
  writer.fields({{"quote\"d", "line\nend"}});
  writer.end();
  writer.value(Json::array());
  writer.end();
  writer.fields({{"last", true}});
  CHECK_FALSE(out.str().ends_with('\n'));
  writer.end();

  const Json expected = {
      {"message_type", "x"},
      {"count", 3},
      {"none", nullptr},
      {"empty", Json::array()},
      {"parts", {{{"a", 1}}, {{"within", {"one", 2}}, {"quote\"d", "line\nend"}}, Json::array()}},
      {"last", true}};
  CHECK(Json::parse(out.str()) == expected);
  CHECK(out.str().ends_with("}\n"));
  CHECK(out.str().find('\n') == out.str().size() - 1);  // a message is a line
}

TEST_CASE("names that are no UTF-8 do not spoil a document", "[json_writer]") {
  std::ostringstream out;
  JsonWriter writer(out);
  writer.fields({{"path", "a\xff z"}});
  writer.end();
  CHECK(nlohmann::json::parse(out.str())["path"] == "a\xef\xbf\xbd z");
}

}  // namespace kin::cmd
