#include "cmd/html_page.h"

#include "lib/base/text.h"

#include <fmt/core.h>

namespace kin::cmd {
namespace {

constexpr std::string_view kStyle = R"(
:root { --ink: #1b1f24; --paper: #ffffff; --soft: #57606a; --rule: #d0d7de; --one: #0550ae; --two: #bc4c00;
  --three: #1a7f37; --field: #ddf4ff; color-scheme: light dark; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --soft: #9198a1; --rule: #3d444d;
  --one: #79c0ff; --two: #ffa657; --three: #7ee787; --field: #12304f; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; } h2 { font-size: 1.2rem; margin-top: 2.5rem; }
p.made { color: var(--soft); font-size: .9rem; }
figure { margin: 1rem 0; } figcaption, caption { color: var(--soft); text-align: left; padding: .3rem 0; }
svg { display: block; width: 100%; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--ink); } svg .soft { fill: var(--soft); } svg .axis { stroke: var(--rule); }
svg .one { fill: var(--one); } svg .two { fill: var(--two); } svg .field { fill: var(--field); stroke: var(--paper); }
svg path.one { fill: none; stroke: var(--one); stroke-width: 2; }
svg path.two { fill: none; stroke: var(--two); stroke-width: 2; stroke-dasharray: 6 3; }
.scroll { overflow-x: auto; } .scroll:focus-visible, a:focus-visible { outline: 2px solid var(--one); }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--rule); text-align: right; white-space: nowrap; }
th:first-child, td:first-child, .left { text-align: left; white-space: normal; overflow-wrap: anywhere; }
tbody th { font-weight: normal; } a { color: var(--one); }
@media print { :root { --ink: #000; --paper: #fff; --soft: #333; --rule: #999; } body { max-width: none; padding: 0; }
  figure, tr { break-inside: avoid; } h2 { break-after: avoid; } a { color: inherit; text-decoration: none; } }
)";

// A file's address: all but the plainest characters of a path as %NN.
std::string file_link(const std::string& path) {
  std::string out = "file://";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                       (byte >= '0' && byte <= '9') || c == '/' || c == '.' || c == '-' || c == '_';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

HtmlPage::Cell HtmlPage::bytes(std::uint64_t bytes) {
  return {human_bytes(bytes), std::to_string(bytes), ""};
}
HtmlPage::Cell HtmlPage::number(std::uint64_t number) {
  return {grouped(number), std::to_string(number), ""};
}
HtmlPage::Cell HtmlPage::percent(double part, double whole) {
  if (whole == 0) return text("-");
  return {fmt::format("{:.1f} %", 100 * part / whole), fmt::format("{:.6f}", 100 * part / whole), ""};
}
HtmlPage::Cell HtmlPage::file(const std::string& path) {
  return {path, "", path.starts_with('/') ? file_link(path) : ""};
}

HtmlPage::HtmlPage(std::string_view title) : title_(escape_html(title)) {}

void HtmlPage::heading(std::string_view text) { body_ += fmt::format("<h2>{}</h2>\n", escape_html(text)); }

void HtmlPage::paragraph(std::string_view text) { body_ += fmt::format("<p>{}</p>\n", escape_html(text)); }

void HtmlPage::table(std::string_view id, std::string_view caption, const std::vector<std::string>& columns,
                     const std::vector<std::vector<Cell>>& rows) {
  // Wide ones scroll by themselves, by keyboard too.
  body_ += fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{1}\"><table "
      "id=\"{0}\">\n<caption>{1}</caption>\n"
      "<thead><tr>",
      escape_html(id), escape_html(caption));
  for (const std::string& column : columns)
    body_ += fmt::format("<th scope=\"col\">{}</th>", escape_html(column));
  body_ += "</tr></thead>\n<tbody>\n";
  for (const std::vector<Cell>& row : rows) {
    body_ += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::string inner = escape_html(row[i].text);
      if (!row[i].value.empty())
        inner = fmt::format("<data value=\"{}\">{}</data>", escape_html(row[i].value), inner);
      if (!row[i].link.empty()) inner = fmt::format("<a href=\"{}\">{}</a>", escape_html(row[i].link), inner);
      const bool is_name = row[i].value.empty();
      body_ += i == 0 ? fmt::format("<th scope=\"row\">{}</th>", inner)
                      : fmt::format("<td{}>{}</td>", is_name ? " class=\"left\"" : "", inner);
    }
    body_ += "</tr>\n";
  }
  body_ += "</tbody></table></div>\n";
}

std::string HtmlPage::finish(std::string_view made_by) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n"
      "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n<p "
      "class=\"made\">{2}</p>\n{3}"
      "</main>\n</body>\n</html>\n",
      title_, kStyle, escape_html(made_by), body_);
}

}  // namespace kin::cmd
