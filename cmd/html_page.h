// HtmlPage: a report as one file that needs nothing else: no script, nothing from a network. What is plotted
// is in a table too, for who cannot see it, and every number has its exact value in a <data> element.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kin::cmd {

// For text and attributes. What is no UTF-8 or cannot be printed becomes \xNN.
std::string escape_html(std::string_view text);

class HtmlPage {
 public:
  struct Cell {
    std::string text;   // as people read it
    std::string value;  // as programs do; empty: the same
    std::string link;   // where it leads, if anywhere
  };
  static Cell text(std::string text) { return {std::move(text), "", ""}; }
  static Cell bytes(std::uint64_t bytes);
  static Cell number(std::uint64_t number);
  static Cell percent(double part, double whole);
  // The name of a file, and where it is.
  static Cell file(const std::string& path);

  explicit HtmlPage(std::string_view title);

  void heading(std::string_view text);
  void paragraph(std::string_view text);
  // `id` names it for tests and links. The first column has the rows' names.
  void table(std::string_view id, std::string_view caption, const std::vector<std::string>& columns,
             const std::vector<std::vector<Cell>>& rows);
  void plot(const std::string& svg) { body_ += svg; }  // of cmd/svg_plots.h
  std::string finish(std::string_view made_by);

 private:
  std::string title_, body_;
};

}  // namespace kin::cmd
