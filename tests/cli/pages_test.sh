#!/usr/bin/env bash
# The pages of estimate and report, in a real browser: plots and numbers are there, nothing is amiss.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
command -v chromium >/dev/null || exit 77

# look PAGE: the page's DOM in PAGE.dom, a picture of it in PAGE.png; the browser must have nothing to say of it.
look() {
  local browser=(chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$work/browser"
    --enable-logging=stderr --hide-scrollbars --window-size=1000,4000)
  "${browser[@]}" --dump-dom "file://$PWD/$1" >"$1.dom" 2>"$1.log" || fail "the browser failed on $1"
  "${browser[@]}" --screenshot="$PWD/$1.png" "file://$PWD/$1" 2>>"$1.log" >/dev/null || fail "no picture of $1"
  ! grep -i 'CONSOLE' "$1.log" || fail "the browser complains of $1"
}
# true_of PAGE EXPRESSION: `it` is the JSON; `page` the page, as parsed by the browser.
true_of() {
  python3 - "$1" "$2" <<'PYTHON' || fail "not so: $2"
import html.parser, json, struct, sys, zlib

class Page(html.parser.HTMLParser):
    """Tables by id, as rows of cells, each the value of its <data> or its text; figures; elements."""
    def __init__(self, text):
        super().__init__()
        self.tables, self.figures, self.elements, self.links, self.sources = {}, {}, [], [], []
        self.table = self.figure = self.cell = None
        self.feed(text)
    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.elements.append(tag)
        if tag == "table":
            self.table = self.tables[attributes["id"]] = []
        elif tag == "tr" and self.table is not None:
            self.table.append([])
        elif tag in ("td", "th") and self.table is not None:
            self.cell = ["", None]
        elif tag == "data":
            self.cell[1] = attributes["value"]
        elif tag == "figure":
            self.figure = self.figures[attributes["id"]] = {}
        elif self.figure is not None:
            self.figure.setdefault(tag, []).append(attributes)
        if "href" in attributes:
            self.links.append(attributes["href"])
        self.sources += [value for name, value in attributes.items() if name in ("src", "srcset", "action", "data")]
    def handle_endtag(self, tag):
        if tag in ("td", "th") and self.cell is not None:
            self.table[-1].append(self.cell[1] if self.cell[1] is not None else self.cell[0])
            self.cell = None
        elif tag == "figure":
            self.figure = None
        elif tag == "table":
            self.table = None
    def handle_data(self, data):
        if self.cell is not None:
            self.cell[0] += data

def colours(path):
    """How many different lines of pixels a PNG has: a blank page has one."""
    data = open(path, "rb").read()
    at, stream = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", data[at + 8:at + 18])
        if kind == b"IDAT":
            stream += data[at + 8:at + 8 + size]
        at += size + 12
    rows = zlib.decompress(stream)
    stride = len(rows) // height
    return len({rows[i * stride:(i + 1) * stride] for i in range(height)})

it = json.loads(open("out").read().splitlines()[-1])
page = Page(open(sys.argv[1] + ".dom").read())
picture = sys.argv[1] + ".png"
sys.exit(0 if eval(sys.argv[2]) else 1)
PYTHON
}

# Names that would do harm if they were taken for markup.
mkdir -p 'tree/<script>alert("1")<' "tree/a&b'c"
seq 5000 >'tree/<script>alert("1")</img src=x onerror=y>.txt'
(seq 5000; echo changed) >"tree/a&b'c/-->]]>\"'.txt"
seq 3 9000 >$'tree/a&b\'c/not \xff utf-8'
gzip -n <tree/*/img* >tree/numbers.gz
head -c 100000 /dev/urandom >tree/noise

run 0 --json estimate tree --html estimate.html
look estimate.html
true_of estimate.html 'set(page.figures) == {"methods-plot", "matches-plot", "cumulative-plot", "skew-plot", "directories-plot"}'
true_of estimate.html 'all(figure["svg"] and figure["title"] and figure["desc"] for figure in page.figures.values())'
true_of estimate.html 'len(page.figures["methods-plot"]["rect"]) == 2 * len(it["methods"])'
true_of estimate.html 'len(page.figures["skew-plot"]["path"]) == 2 and all(path["d"].startswith("M") for path in page.figures["skew-plot"]["path"])'
true_of estimate.html '[int(row[1]) for row in page.tables["methods"][1:]] == [method["bytes"] for method in it["methods"]]'
true_of estimate.html 'all(abs(float(row[2]) - method["percent"]) < 1e-5 for row, method in zip(page.tables["methods"][1:], it["methods"]))'
true_of estimate.html '[[int(cell) for cell in row[:5]] for row in page.tables["matches"][1:]] == [[row[key] for key in ("features", "objects", "size", "compressed", "deltas")] for row in it["by_features"]]'
true_of estimate.html 'all(row[0] == pair["path"] or "path_hex" in pair for row, pair in zip(page.tables["pairs"][1:], it["pairs"])) and len(page.tables["pairs"]) == 3'
true_of estimate.html 'len(page.links) == 4 and all(link.startswith("file:///") and ("%3C" in link or "%26" in link) for link in page.links)'
true_of estimate.html '"script" not in page.elements and "img" not in page.elements'
true_of estimate.html 'colours(picture) > 50'
true_of estimate.html 'page.sources == []'
true_of estimate.html '[int(row[3]) for row in page.tables["directories"][1:]] == [row["stored_size"] for row in it["directories"]]'

# The same page on stdout, and nothing else.
run 0 estimate tree/noise --html -
head -1 out | grep -qx '<!DOCTYPE html>' || fail "no page"
tail -1 out | grep -qx '</html>' || fail "more than a page"
run 14 estimate tree/noise --html nowhere/page.html
[ ! -e nowhere ] || fail "made a directory"

# Nothing and little to plot.
mkdir none
run 0 --json estimate none --html none.html
look none.html
true_of none.html 'set(page.figures) == {"methods-plot"} and it["bytes"] == 0'

run 0 init --plain -r repo
run 0 -r repo backup tree
run 0 --json -r repo report --html one.html
look one.html
true_of one.html 'set(page.figures) == {"directories-plot"}'
seq 100 200000 >tree/more
run 0 -r repo backup tree
run 0 --json -r repo report --html report.html
look report.html
true_of report.html 'set(page.figures) == {"growth-plot", "directories-plot"} and len(page.figures["growth-plot"]["path"]) == 2'
true_of report.html '[int(row[8]) for row in page.tables["snapshots"][1:]] == [row["total_stored_size"] for row in it["snapshots"]]'
true_of report.html '[[int(cell) for cell in row[2:8]] for row in page.tables["snapshots"][1:]] == [[row["summary"]["total_bytes_processed"], row["shared_size"], row["added"]["size"], row["added"]["stored_size"], row["deltas"]["stored_size"], row["would_free"]["stored_size"]] for row in it["snapshots"]]'
true_of report.html '[int(row[3]) for row in page.tables["files-stored"][1:]] == [row["stored_size"] for row in it["content"]["top_files"]["by_stored_size"]]'
true_of report.html '"script" not in page.elements and colours(picture) > 50'

# Groups and the study of detectors, with the same names.
run 0 --json groups tree --html groups.html
look groups.html
true_of groups.html 'set(page.figures) == {"groups-plot"} and page.figures["groups-plot"]["svg"]'
true_of groups.html '"script" not in page.elements and "img" not in page.elements and page.sources == []'
true_of groups.html 'int(page.tables["similar"][1][3]) > 20000 and len(page.links) == 0'
run 0 --json study detectors tree --html study.html --sample 3
look study.html
true_of study.html '[int(row[8]) for row in page.tables["detectors"][1:]] == [row["stored_bytes"] for row in it["detectors"]]'
true_of study.html 'set(page.figures) == {"stored-plot"} and "script" not in page.elements'
