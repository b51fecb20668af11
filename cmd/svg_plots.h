// Plots for an HtmlPage, as SVG: each a figure with a caption, and a text for who cannot see it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kin::cmd {

struct PlotText {
  std::string id, caption;
};

// Lengths beside each other, from 0 to 1; longer ones are cut.
struct Bar {
  std::string name, value;
  double length = 0;
};
std::string bars_plot(const PlotText& text, const std::vector<Bar>& bars);

// Curves of points whose x and y are from 0 to 1, ascending by x. At most two: the second is dashed.
struct Curve {
  std::string name;
  std::vector<std::pair<double, double>> points;
};
struct Axis {
  std::string name;
  std::vector<std::pair<double, std::string>> marks;  // where, and what is there
};
std::string curves_plot(const PlotText& text, const Axis& x, const Axis& y, const std::vector<Curve>& curves);
Axis percent_axis(std::string name);

// Columns side by side over each mark of x; at most two of each, from 0 to 1.
std::string columns_plot(const PlotText& text, const std::string& x_name, const Axis& y,
                         const std::vector<std::string>& names,
                         const std::vector<std::pair<std::string, std::vector<double>>>& columns);

// Areas in proportion to sizes.
struct Area {
  std::string name, value;
  double size = 0;
};
std::string treemap_plot(const PlotText& text, std::vector<Area> areas);

// Stars beside each other: a middle and what is tied to it, the nearer the stronger the tie (0 to 1).
struct Star {
  struct Point {
    std::string name;
    double tie = 0;
  };
  std::string middle;
  std::vector<Point> points;
};
std::string stars_plot(const PlotText& text, const std::vector<Star>& stars);

}  // namespace kin::cmd
