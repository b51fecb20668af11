#include "cmd/svg_plots.h"

#include "cmd/html_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace kin::cmd {
namespace {

constexpr double kWidth = 720;
// Around the field of plots with axes.
constexpr double kLeft = 104, kRight = 16, kTop = 36, kBottom = 52, kFieldHeight = 260;

struct Box {
  double x, y, width, height;
};

std::string figure(const PlotText& text, double height, const std::string& inner, const std::string& told) {
  return fmt::format(
      "<figure id=\"{0}\">\n<svg viewBox=\"0 0 {1:.0f} {2:.0f}\" role=\"img\" aria-labelledby=\"{0}-title "
      "{0}-told\">\n<title id=\"{0}-title\">{3}</title>\n<desc id=\"{0}-told\">{4}</desc>\n{5}</svg>\n"
      "<figcaption>{3}</figcaption>\n</figure>\n",
      escape_html(text.id), kWidth, height, escape_html(text.caption), escape_html(told), inner);
}

std::string label(double x, double y, const char* anchor, const char* style, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n", x, y,
                     anchor, style, escape_html(text));
}

std::string rule(double x1, double y1, double x2, double y2) {
  return fmt::format("<line class=\"axis\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", x1,
                     y1, x2, y2);
}

std::string rectangle(const Box& box, const char* style, const std::string& title) {
  return fmt::format(
      "<rect class=\"{}\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" "
      "height=\"{:.2f}\"><title>{}</title></rect>\n",
      style, box.x, box.y, box.width, box.height, escape_html(title));
}

// As much of its end as fits: the end of a path tells more than its start.
std::string end_of(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t begin = text.size() - (most - 3);
  while (begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) ++begin;
  return "..." + text.substr(begin);
}

const char* style_of(std::size_t series) { return series == 0 ? "one" : "two"; }

double at_x(double part) { return kLeft + part * (kWidth - kLeft - kRight); }
double at_y(double part) { return kTop + (1 - part) * kFieldHeight; }

std::string legend(const std::vector<std::string>& names) {
  std::string out;
  double x = kLeft;
  for (std::size_t i = 0; i < names.size(); ++i) {
    out += rectangle({x, 12, 12, 12}, style_of(i), names[i]);
    out += label(x + 18, 22, "start", "", names[i]);
    x += 40 + 7.0 * static_cast<double>(names[i].size());
  }
  return out;
}

std::string y_axis(const Axis& y) {
  std::string out;
  for (const auto& [part, text] : y.marks)
    out += rule(kLeft, at_y(part), kWidth - kRight, at_y(part)) +
           label(kLeft - 8, at_y(part) + 4, "end", "soft", text);
  out += fmt::format(
      "<text transform=\"translate(14 {:.1f}) rotate(-90)\" text-anchor=\"middle\" "
      "class=\"soft\">{}</text>\n",
      kTop + kFieldHeight / 2, escape_html(y.name));
  return out;
}

std::string x_name(const std::string& name) {
  return label(at_x(0.5), kTop + kFieldHeight + 44, "middle", "soft", name);
}

}  // namespace

Axis percent_axis(std::string name) {
  return {std::move(name), {{0, "0 %"}, {0.25, "25 %"}, {0.5, "50 %"}, {0.75, "75 %"}, {1, "100 %"}}};
}

std::string bars_plot(const PlotText& text, const std::vector<Bar>& bars) {
  constexpr double kRow = 44;
  std::string inner, told;
  double y = 4;
  for (const Bar& bar : bars) {
    const double length = std::clamp(bar.length, 0.0, 1.0) * kWidth;
    inner += label(0, y + 13, "start", "", bar.name) + label(kWidth, y + 13, "end", "soft", bar.value);
    inner += rectangle({0, y + 19, kWidth, 14}, "field", bar.name);
    inner += rectangle({0, y + 19, length, 14}, "one", fmt::format("{}: {}", bar.name, bar.value));
    told += fmt::format("{}: {}. ", bar.name, bar.value);
    y += kRow;
  }
  return figure(text, y, inner, told);
}

std::string curves_plot(const PlotText& text, const Axis& x, const Axis& y,
                        const std::vector<Curve>& curves) {
  std::vector<std::string> names;
  std::string lines, told;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    names.push_back(curves[i].name);
    std::string path;
    for (const auto& [at, value] : curves[i].points)
      path += fmt::format("{}{:.2f} {:.2f}", path.empty() ? "M" : " L", at_x(at), at_y(value));
    lines += fmt::format("<path class=\"{}\" d=\"{}\"/>\n", style_of(i), path);
    told += curves[i].name + ". ";
  }
  std::string inner = legend(names) + y_axis(y);
  for (const auto& [part, mark] : x.marks)
    inner += label(at_x(part), kTop + kFieldHeight + 20,
                   part == 0   ? "start"
                   : part == 1 ? "end"
                               : "middle",
                   "soft", mark);
  inner += x_name(x.name) + lines;
  return figure(text, kTop + kFieldHeight + kBottom, inner,
                fmt::format("{}{} by {}. The table below has the numbers.", told, y.name, x.name));
}

std::string columns_plot(const PlotText& text, const std::string& x, const Axis& y,
                         const std::vector<std::string>& names,
                         const std::vector<std::pair<std::string, std::vector<double>>>& columns) {
  std::string inner = legend(names) + y_axis(y);
  const double room = columns.empty() ? 1 : 1.0 / static_cast<double>(columns.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const auto& [mark, values] = columns[i];
    const double begin = at_x(static_cast<double>(i) * room), width = at_x(room) - at_x(0);
    const double each = 0.8 * width / static_cast<double>(std::max<std::size_t>(values.size(), 1));
    for (std::size_t j = 0; j < values.size(); ++j) {
      const double top = at_y(std::clamp(values[j], 0.0, 1.0));
      inner += rectangle({begin + 0.1 * width + each * static_cast<double>(j), top, each, at_y(0) - top},
                         style_of(j), fmt::format("{} {}: {} {:.1f} %", x, mark, names[j], 100 * values[j]));
    }
    inner += label(begin + width / 2, kTop + kFieldHeight + 20, "middle", "soft", mark);
  }
  inner += x_name(x);
  return figure(text, kTop + kFieldHeight + kBottom, inner,
                fmt::format("{} by {}. The table below has the numbers.", y.name, x));
}

// Rows along the shorter side of what is left, each as long as its areas stay near to squares (Bruls, Huizing
// and van Wijk's squarified treemaps).
std::string treemap_plot(const PlotText& text, std::vector<Area> areas) {
  constexpr double kHeight = 420;
  std::erase_if(areas, [](const Area& area) { return area.size <= 0; });
  std::sort(areas.begin(), areas.end(), [](const Area& a, const Area& b) { return a.size > b.size; });
  double total = 0;
  for (const Area& area : areas) total += area.size;
  std::string inner, told;
  Box left{0, 0, kWidth, kHeight};
  for (std::size_t begin = 0; begin < areas.size();) {
    const double scale = left.width * left.height / total;
    const double side = std::min(left.width, left.height);
    double sum = 0, worst = 0;
    std::size_t end = begin;
    while (end < areas.size()) {
      const double more = sum + areas[end].size;
      const double thick = more * scale / side;  // of the row, with this one
      const double largest = areas[begin].size * scale / thick / thick,
                   smallest = areas[end].size * scale / thick / thick;
      const double next = std::max(largest, 1 / std::max(smallest, 1e-9));
      if (end > begin && next > worst) break;
      worst = next;
      sum = more;
      ++end;
    }
    const bool is_column = left.width >= left.height;  // a row that stands
    const double thick = sum * scale / side;
    double at = is_column ? left.y : left.x;
    for (; begin < end; ++begin) {
      const Area& area = areas[begin];
      const double along = area.size * scale / thick;
      const Box box = is_column ? Box{left.x, at, thick, along} : Box{at, left.y, along, thick};
      at += along;
      const std::string name = fmt::format("{}: {}", area.name, area.value);
      inner += rectangle(box, "field", name);
      told += name + ". ";
      const auto fits = static_cast<std::size_t>(std::max(0.0, (box.width - 10) / 6.8));
      if (box.height < 20 || fits < 8) continue;
      const std::string shown = end_of(area.name, fits);
      inner += label(box.x + 5, box.y + 15, "start", "", shown);
      if (box.height >= 36 && area.value.size() <= fits)
        inner += label(box.x + 5, box.y + 31, "start", "soft", area.value);
    }
    total -= sum;
    if (is_column) {
      left.x += thick;
      left.width -= thick;
    } else {
      left.y += thick;
      left.height -= thick;
    }
  }
  return figure(text, kHeight, inner, told);
}

std::string stars_plot(const PlotText& text, const std::vector<Star>& stars) {
  constexpr std::size_t kColumns = 4;
  constexpr double kCell = kWidth / kColumns, kNear = 18, kFar = kCell / 2 - 16, kTurn = 6.283185307179586;
  std::string out, told;
  for (std::size_t i = 0; i < stars.size(); ++i) {
    const Star& star = stars[i];
    const double x = kCell * (static_cast<double>(i % kColumns) + 0.5);
    const double y = (kCell + 20) * static_cast<double>(i / kColumns) + kCell / 2;
    std::string points;
    for (std::size_t j = 0; j < star.points.size(); ++j) {
      const double angle = kTurn * static_cast<double>(j) / static_cast<double>(star.points.size());
      const double away = kFar - (kFar - kNear) * std::clamp(star.points[j].tie, 0.0, 1.0);
      const double px = x + away * std::cos(angle), py = y + away * std::sin(angle);
      out += rule(x, y, px, py);
      points += fmt::format(
          "<circle class=\"one\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{}</title></circle>\n", px, py,
          escape_html(star.points[j].name));
    }
    out += points;
    out +=
        fmt::format("<circle class=\"two\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"6\"><title>{}</title></circle>\n",
                    x, y, escape_html(star.middle));
    out += label(x, y + kCell / 2 + 10, "middle", "soft", end_of(star.middle, 24));
    told += fmt::format("{}{}: {} files", told.empty() ? "" : "; ", star.middle, star.points.size() + 1);
  }
  const double rows = static_cast<double>((stars.size() + kColumns - 1) / kColumns);
  return figure(text, std::max(1.0, rows) * (kCell + 20), out, told);
}

}  // namespace kin::cmd
