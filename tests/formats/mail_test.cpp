// Mail: mailboxes come apart into messages, messages into their attachments, and all of it comes back bit for
// bit.
#include "formats/base64.h"
#include "formats/quoted_printable.h"
#include "tests/support/opened_container.h"
#include "tests/support/random_bytes.h"

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include <algorithm>

using namespace kin;
using namespace kin::testing;

namespace {

Bytes bytes_of(std::string_view text) {
  const ByteView view = as_bytes(text);
  return Bytes(view.begin(), view.end());
}

std::string text_of(const Bytes& bytes) { return std::string(as_text(bytes)); }

// Lines of `length` characters, or one line without an end if it is 0.
std::string base64(const Bytes& plain, std::size_t length) {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string characters, out;
  for (std::size_t i = 0; i < plain.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < 3; ++j) bits = bits << 8 | (i + j < plain.size() ? plain[i + j] : 0);
    for (std::size_t j = 0; j < 4; ++j)
      characters += i + j > plain.size() ? '=' : kAlphabet[bits >> (18 - 6 * j) & 63];
  }
  if (length == 0) return characters;
  for (std::size_t i = 0; i < characters.size(); i += length) (out += characters.substr(i, length)) += '\n';
  return out;
}

// As most encoders do it: lines of 76 at most, broken anywhere.
std::string quoted(const Bytes& plain, bool lower_case = false, std::string_view soft_break = "=\n") {
  std::string out, line;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const std::uint8_t byte = plain[i];
    if (byte == '\n') {
      (out += line) += '\n';
      line.clear();
      continue;
    }
    const bool ends = i + 1 == plain.size() || plain[i + 1] == '\n';
    const bool escaped = byte > 126 || byte < 32 || byte == '=' || (byte == ' ' && ends);
    const std::string token = escaped ? fmt::format(fmt::runtime(lower_case ? "={:02x}" : "={:02X}"), byte)
                                      : std::string(1, static_cast<char>(byte));
    if (line.size() + token.size() > 75) {
      (out += line) += soft_break;
      line.clear();
    }
    line += token;
  }
  return out + line;
}

std::string with_line_ends(std::string text, std::string_view line_end) {
  std::string out;
  for (const char c : text) c == '\n' ? out += line_end : out += c;
  return out;
}

const std::string kHead =
    "Return-Path: <a@example.org>\nReceived: by example.org\n\tfor b; Mon, 6 May 2024\nFrom: a@example.org\n"
    "Message-ID: <1@example.org>\nMIME-Version: 1.0\n";

// A text and an attachment.
std::string message(const std::string& body, const std::string& encoding = "base64",
                    const std::string& boundary = "=_b") {
  return kHead + "Content-Type: multipart/mixed;\n  boundary=\"" + boundary + "\"\n\npreamble\n--" +
         boundary + "\nContent-Type: text/plain\n\nHello\n--not a boundary\n--" + boundary +
         "\nContent-Type: application/octet-stream; name=\"a.bin\"\nContent-Transfer-Encoding: " + encoding +
         "\n\n" + body + "\n--" + boundary + "--\nepilogue\n";
}

const std::string kEnvelope = "From a@example.org Mon May  6 12:00:00 2024\n";

void check_opens(const std::string& text, const Bytes& content) {
  const Bytes bytes = bytes_of(text);
  OpenedContainer opened = open_container(bytes);
  check_exact(opened, bytes);
  CHECK(has_object(opened, content));
}

bool opens(const std::string& text) { return open_container(bytes_of(text)).extent.has_value(); }

}  // namespace

TEST_CASE("an attachment is what the file was, whatever the lines of its base64 are", "[mail]") {
  for (std::size_t length = 0; length <= 100; ++length) {
    if (length >= 1 && length < 4) continue;
    INFO(length);
    // Each length with two of the three ends that base64 can have.
    for (const std::size_t size : {2000 + length % 3, 2001 + length % 3}) {
      const Bytes file = random_bytes(length, size);
      for (const char* line_end : {"\n", "\r\n"})
        check_opens(with_line_ends(message(base64(file, length)), line_end), file);
    }
  }
}

TEST_CASE("base64 that encoders should not write comes back as it was", "[mail]") {
  const Bytes file = random_bytes(1, 3001);
  std::string text = base64(file, 76);
  SECTION("without padding") { text.erase(text.find('='), 2); }
  SECTION("with half of the padding") { text.erase(text.find('='), 1); }
  SECTION("with bits that are over") { text[text.find('=') - 1] += 1; }
  SECTION("with padding on a line of its own") { text.insert(text.find('='), "\n"); }
  SECTION("with padding on two lines") { text.insert(text.find('=') + 1, "\r\n"); }
  SECTION("with lines that end otherwise") {
    for (std::size_t at = 76 * 5; at < text.size(); at += 77 * 7) text.insert(text.find('\n', at), "\r");
  }
  SECTION("with a line of another length") { text.insert(20, "\n"); }
  SECTION("with a footer") { text += "A footer of the list\n"; }
  check_opens(message(text), file);
}

TEST_CASE("base64 that is cut or damaged is opened as far as it goes", "[mail]") {
  const Bytes file = random_bytes(2, 9000);
  const std::string text = base64(file, 76);
  for (const std::string& damaged :
       {text.substr(0, 6001), text.substr(0, 6002), text.substr(0, 6003),
        text.substr(0, 5000) + "!" + text.substr(5000), text.substr(0, 77 * 40) + "\n" + text.substr(77 * 40),
        text.substr(0, 77 * 40) + "=\n" + text.substr(77 * 40)}) {
    const Bytes bytes = bytes_of(message(damaged));
    OpenedContainer opened = open_container(bytes);
    check_exact(opened, bytes);
    CHECK(std::any_of(opened.objects.objects.begin(), opened.objects.objects.end(), [&](const auto& object) {
      return object.second.size() > 2000 && object.second.size() <= file.size() &&
             std::equal(object.second.begin(), object.second.end() - 2, file.begin());
    }));
  }
}

TEST_CASE("a long attachment is opened without being held", "[mail]") {
  const Bytes file = random_bytes(3, 11 << 20);
  for (const std::size_t length : {76, 0}) {
    const Bytes bytes = bytes_of(message(base64(file, length)));
    OpenedContainer opened = open_container(bytes);
    check_exact(opened, bytes);
    std::size_t largest = 0;
    for (const auto& [id, object] : opened.objects.objects) largest = std::max(largest, object.size());
    CHECK(largest >= (1 << 20));
    CHECK(opened.recipes == 1);
  }
}

TEST_CASE("corrections of base64 that are forged give an error, or end", "[mail]") {
  const auto rebuild = [](Bytes plain, Bytes corrections) {
    const auto source = formats::rebuild_base64(std::make_unique<MemorySource>(std::move(plain)),
                                                std::make_unique<MemorySource>(std::move(corrections)));
    return read_to_end(*source);
  };
  const Bytes plain = bytes_of("some bytes");
  CHECK(text_of(value_of(rebuild(plain, {0, 5, 16}))) == "c29tZSBieXRlcw==\n");
  CHECK(text_of(value_of(rebuild(plain, {0, 4, 14}))) == "c29tZSBieXRlcw");
  CHECK(code_of(rebuild({}, {})) == ErrorCode::corrupt);
  for (const Bytes& forged : {Bytes{64, 5, 16}, Bytes{16, 5, 16}, Bytes{0, 1, 16}, Bytes{0, 7, 16},
                              Bytes{0, 4, 0}, Bytes{0, 5}, Bytes{0}, Bytes{0, 5, 3, 0}})
    CHECK(code_of(rebuild(plain, forged)) == ErrorCode::corrupt);
  CHECK(code_of(rebuild(plain, Bytes(20 << 10, 5))) == ErrorCode::corrupt);
}

TEST_CASE("quoted-printable is decoded, and comes back as each encoder wrote it", "[mail]") {
  Bytes file = text_like(5, 40000);
  for (std::size_t i = 0; i < file.size(); i += 37)
    if (file[i] != '\n') file[i] = i % 2 ? 0xc3 : '=';
  std::string text = quoted(file);
  SECTION("as most do") {}
  SECTION("in lower case") { text = quoted(file, true); }
  SECTION("with lines that are not broken") {
    for (std::size_t at; (at = text.find("=\n")) != std::string::npos;) text.erase(at, 2);
  }
  check_opens(message(text, "quoted-printable"), file);
}

TEST_CASE("any text at all goes through quoted-printable and back", "[mail]") {
  const std::vector<std::string> pieces = {"=",     "=\n", "=\r\n",  "\n",     "\r\n",  "\r",  " ",
                                           "\t",    "=3D", "=3d",    "=aF",    "=0A",   "=0D", ".",
                                           "From ", "x",   "words ", "=C3=A4", "=\n=\n"};
  Random random(6);
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (std::uint64_t n = random.below(200); n > 0; --n) text += pieces[random.below(pieces.size())];
    text += quoted(Bytes(4000, 0xe4));  // so that it pays
    auto member = value_of(formats::QuotedPrintableMember::open(as_bytes(text)));
    REQUIRE(member);
    Bytes plain = value_of(read_to_end(*member));
    const auto source =
        formats::rebuild_quoted_printable(std::make_unique<MemorySource>(std::move(plain)),
                                          std::make_unique<MemorySource>(member->take_corrections()));
    CHECK(text_of(value_of(read_to_end(*source))) == text);
  }
}

TEST_CASE("the corrections of a common encoder are a few bytes", "[mail]") {
  Bytes file = text_like(5, 40000);
  for (std::size_t i = 0; i < file.size(); i += 50)
    if (file[i] != '\n') file[i] = 0xe4;
  const std::string text = quoted(file);
  auto member = value_of(formats::QuotedPrintableMember::open(as_bytes(text)));
  REQUIRE(member);
  CHECK(member->take_corrections().size() < 16);
}

TEST_CASE("corrections of quoted-printable that are forged give an error, or end", "[mail]") {
  const auto rebuild = [](Bytes corrections) {
    const auto source =
        formats::rebuild_quoted_printable(std::make_unique<MemorySource>(bytes_of("a=b\n")),
                                          std::make_unique<MemorySource>(std::move(corrections)));
    return read_to_end(*source);
  };
  CHECK(text_of(value_of(rebuild({0, 0, 0}))) == "a=3Db\n");
  CHECK(text_of(value_of(rebuild({0, 4, 0}))) == "a=\n=3D=\nb\n");
  CHECK(text_of(value_of(rebuild({0, 0, 0, 1 << 3 | 1}))) == "a=b\n");
  CHECK(text_of(value_of(rebuild({2, 0, 0, 4 << 3 | 4}))) == "a=3Db\n=\r\n");
  for (const Bytes& forged :
       {Bytes{}, Bytes{8, 0, 0}, Bytes{0, 0, 1}, Bytes{0, 0, 1, 0xff, 0x7f}, Bytes{0, 0, 0, 8},
        Bytes{0, 0, 0, 5 << 3 | 4}, Bytes{0, 0, 0, 4 << 3 | 1}, Bytes(100, 0)})
    CHECK(code_of(rebuild(forged)) == ErrorCode::corrupt);
}

TEST_CASE("corrections that are cut or changed anywhere give an error, or end", "[mail]") {
  // With lines that break rules, so that there are corrections of all kinds.
  std::string text = quoted(text_like(3, 2000)) + quoted(Bytes(500, 0xe4));
  for (const char* odd : {"=3d", "=41", "==", "\r", "=\n", "=\r\n", " \n", "=\n=\n"})
    text.insert(text.find(' ', text.size() / 3), odd);
  const std::string lines = base64(random_bytes(4, 501), 60) + "QUJD\r\nREVG\nQQ";
  const auto check = [](const Bytes& plain, const Bytes& corrections, auto rebuild, std::string_view whole) {
    REQUIRE(corrections.size() > 4);
    const auto result = [&](Bytes other) {
      const auto source =
          rebuild(std::make_unique<MemorySource>(plain), std::make_unique<MemorySource>(other), nullptr);
      // Forged lengths are long; whoever reads has a size to compare with.
      LimitedSource limited(*source, 64 << 10);
      return read_to_end(limited);
    };
    CHECK(text_of(value_of(result(corrections))) == whole);
    for (std::size_t at = 0; at < corrections.size(); ++at) {
      const auto cut =
          result(Bytes(corrections.begin(), corrections.begin() + static_cast<std::ptrdiff_t>(at)));
      if (!cut) CHECK(cut.error().code() == ErrorCode::corrupt);
      for (int flip = 1; flip < 256; flip *= 2) {
        Bytes other = corrections;
        other[at] ^= static_cast<std::uint8_t>(flip);
        const auto back = result(std::move(other));
        if (!back) CHECK(back.error().code() == ErrorCode::corrupt);
      }
    }
  };
  auto quoted_member = value_of(formats::QuotedPrintableMember::open(as_bytes(text)));
  REQUIRE(quoted_member);
  const Bytes quoted_plain = value_of(read_to_end(*quoted_member));
  check(quoted_plain, quoted_member->take_corrections(), formats::rebuild_quoted_printable, text);
  MemorySource memory(bytes_of(lines));
  PeekSource in(memory);
  formats::Base64Member base64_member(in);
  const Bytes base64_plain = value_of(read_to_end(base64_member));
  CHECK(base64_member.encoded_bytes() == lines.size());
  check(base64_plain, base64_member.take_corrections(), formats::rebuild_base64, lines);
}

TEST_CASE("messages without parts that pay stay closed", "[mail]") {
  const std::string text = text_of(text_like(1, 30000));
  CHECK_FALSE(opens(kHead + "\n" + text));
  CHECK_FALSE(opens(kEnvelope + kHead + "\n" + text));
  CHECK_FALSE(opens(message(text, "7bit")));
  CHECK_FALSE(opens(message(base64(random_bytes(1, 60), 76))));
  CHECK_FALSE(opens(message("short =3D text", "quoted-printable")));
  CHECK_FALSE(opens(message(text, "quoted-printable")));  // which has nothing that is escaped
  CHECK_FALSE(opens(message("this is not base64", "base64")));
}

TEST_CASE("text that only begins like mail is none", "[mail]") {
  const std::string attachment = base64(random_bytes(1, 5000), 76);
  CHECK(opens(message(attachment)));
  CHECK_FALSE(opens("From here on it is text.\n\nFrom there too.\n" + message(attachment)));
  CHECK_FALSE(opens("From me Mon May 6 at noon\nFrom: x\n\n" + message(attachment)));
  CHECK_FALSE(opens("A line of text\n" + message(attachment)));
  CHECK_FALSE(opens("Package: kin\nVersion: 1\nContent-Transfer-Encoding: base64\n\n" + attachment));
  CHECK_FALSE(
      opens("Date: today\nContent-Type: text/plain\nContent-Transfer-Encoding: base64\n\n" + attachment));
}

TEST_CASE("messages of a mailbox are what they are in a Maildir", "[mail]") {
  const std::string plain = kHead + "Subject: one\n\nHello\n\n>From me\n";
  const std::string attached = message(base64(random_bytes(2, 3000), 72));
  const std::string empty = kHead;
  for (const char* line_end : {"\n", "\r\n"}) {
    std::string mailbox;
    for (const std::string& each : {plain, attached, empty, plain + "\n", plain})
      mailbox += kEnvelope + each + "\n";
    const Bytes bytes = bytes_of(with_line_ends(mailbox, line_end));
    OpenedContainer opened = open_container(bytes);
    check_exact(opened, bytes);
    CHECK(opened.recipes == 2);
    for (const std::string& each : {plain, empty, plain + "\n"})
      CHECK(has_object(opened, bytes_of(with_line_ends(each, line_end))));
    CHECK(has_object(opened, random_bytes(2, 3000)));
    // Without the last empty line, and in the midst of one.
    for (std::size_t less = 1; less < 50; ++less)
      check_closed_or_exact(Bytes(bytes.begin(), bytes.end() - static_cast<std::ptrdiff_t>(less)));
  }
}

TEST_CASE("envelopes of all kinds separate messages", "[mail]") {
  const std::string body = kHead + "\nx\n";
  for (const char* envelope :
       {"From a Mon May  6 12:00:00 2024", "From - Mon May 06 12:00:00 2024", "From a@b Mon May 6 12:00 2024",
        "From a@b Mon May  6 12:00:00 CEST 2024", "From a@b Mon May  6 12:00:00 2024 +0200",
        "From \"a b\"@c  Mon May  6 12:00:00 2024 remote from d"}) {
    INFO(envelope);
    const std::string mailbox = std::string(envelope) + "\n" + body + "\n" + envelope + "\n" + body + "\n";
    check_opens(mailbox, bytes_of(body));
  }
}

TEST_CASE("a long mailbox of long messages is cut where it should be", "[mail]") {
  std::string mailbox;
  std::vector<std::string> messages;
  Random random(4);
  for (int i = 0; i < 40; ++i) {
    messages.push_back(kHead + "\n" +
                       text_of(text_like(static_cast<std::uint64_t>(i), random.below(200'000))) + "\n");
    mailbox += kEnvelope + messages.back() + "\n";
  }
  const Bytes bytes = bytes_of(mailbox);
  OpenedContainer opened = open_container(bytes);
  check_exact(opened, bytes);
  for (const std::string& each : messages) CHECK(has_object(opened, bytes_of(each)));
}

TEST_CASE("a message larger than memory that does not pay leaves its mailbox open", "[mail]") {
  const std::string small = kHead + "\nsmall\n";
  const std::string large = kHead + "Content-Type: multipart/mixed; boundary=b\n\n--b\n\n" +
                            text_of(text_like(2, 9 << 20)) + "\n--b--\n";
  check_opens(kEnvelope + small + "\n" + kEnvelope + large + "\n" + kEnvelope + small, bytes_of(small));
}

TEST_CASE("multiparts within multiparts, and messages within messages, are opened", "[mail]") {
  const Bytes one = random_bytes(1, 1000), two = random_bytes(2, 1000), three = random_bytes(3, 1000);
  const std::string base64_header = "Content-Transfer-Encoding: BASE64 (comment)\n\n";
  // Boundaries that begin like one another, an inner one that is never closed, and a message in a part.
  const std::string text =
      kHead + "Content-Type: Multipart/Mixed; charset=x; Boundary=\"a\"\n\n--a\n" +
      "Content-Type: multipart/alternative; boundary=aa\n\n--aa\n" + base64_header + base64(one, 76) +
      "--aa  \n\ntext\n--aab\n--a a\n--aa\nContent-Type: multipart/related;\n" +
      " boundary=\"aaa\"\n\n--aaa\n" + base64_header + base64(two, 60) +
      "--a\nContent-Type: message/rfc822\n\n" + message(base64(three, 64), "base64", "a-") + "--a--\n";
  for (const char* line_end : {"\n", "\r\n"}) {
    const Bytes bytes = bytes_of(with_line_ends(text, line_end));
    OpenedContainer opened = open_container(bytes);
    check_exact(opened, bytes);
    for (const Bytes* each : {&one, &two, &three}) CHECK(has_object(opened, *each));
  }
}

TEST_CASE("a zip in a message in a mailbox in a tar.gz is opened to the bottom", "[mail]") {
  TempDir dir;
  const Bytes file = text_like(8, 5000);
  write_bytes(dir / "file", file);
  run_in(dir, "zip -q a.zip file");
  const std::string one = message(base64(read_bytes(dir / "a.zip"), 76));
  write_bytes(dir / "box", as_bytes(kEnvelope + one + "\n" + kEnvelope + one + "\n"));
  run_in(dir, "tar -czf a box");
  const Bytes bytes = read_bytes(dir / "a");
  OpenedContainer opened = open_container(bytes);
  check_exact(opened, bytes);
  CHECK(has_object(opened, file));
  CHECK(opened.recipes >= 5);
}

TEST_CASE("mail of Python's own makers opens and comes back exactly", "[mail]") {
  TempDir dir;
  const Bytes noise = random_bytes(9, 30000);
  std::string umlauts;
  for (int i = 0; i < 3000; ++i)
    umlauts += i % 13 == 0 ? "gr\xc3\xb6\xc3\x9f"
                             "er\n"
                           : "words = words ";
  umlauts += "\n";
  write_bytes(dir / "noise", noise);
  write_bytes(dir / "text", as_bytes(umlauts));
  run_in(dir,
         "python3 -c \"import email.message, email.policy, mailbox, quopri\n"
         "for name, policy in (('lf', email.policy.default), ('crlf', email.policy.SMTP)):\n"
         "  m = email.message.EmailMessage(policy=policy)\n"
         "  m['From'] = 'a@example.org'; m['To'] = 'b@example.org'; m['Subject'] = 'x'; m['Message-ID'] = "
         "'<1@x>'\n"
         "  m.set_content(open('text', newline='').read(), cte='quoted-printable')\n"
         "  m.add_attachment(open('noise', 'rb').read(), maintype='application', subtype='zip', "
         "filename='n.zip')\n"
         "  open(name, 'wb').write(m.as_bytes())\n"
         "box = mailbox.mbox('box')\n"
         "for i in range(3): box.add(open('lf', 'rb').read())\n"
         "box.close()\n"
         "head = b'From: a\\nSubject: b\\nMIME-Version: 1.0\\nContent-Transfer-Encoding: "
         "quoted-printable\\n\\n'\n"
         "open('quopri', 'wb').write(head + quopri.encodestring(open('text', 'rb').read()))\"");
  for (const char* name : {"lf", "crlf", "box", "quopri"}) {
    INFO(name);
    const Bytes bytes = read_bytes(dir / name);
    OpenedContainer opened = open_container(bytes);
    check_exact(opened, bytes);
    CHECK(has_object(opened, noise) == (std::string_view(name) != "quopri"));
    CHECK((has_object(opened, as_bytes(umlauts)) ||
           has_object(opened, as_bytes(with_line_ends(umlauts, "\r\n")))));
  }
}

TEST_CASE("a message that is cut or changed anywhere is closed or exact", "[mail]") {
  const Bytes whole = bytes_of(message(base64(text_like(1, 400), 40)));
  REQUIRE(open_container(whole).extent);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    check_closed_or_exact(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(at)));
    Bytes changed = whole;
    changed[at] = changed[at] == '\n' ? 0 : '\n';
    check_closed_or_exact(changed);
  }
}

TEST_CASE("mail that is made to do harm is closed or exact, and soon so", "[mail]") {
  const std::string attachment = base64(random_bytes(1, 3000), 76);
  std::string deep = kHead, messages = kHead, quotes = kHead;
  for (int i = 0; i < 20'000; ++i) {
    const std::string boundary = std::string(static_cast<std::size_t>(i % 150 + 1), 'b');
    deep += "Content-Type: multipart/mixed; boundary=" + boundary + "\n\n--" + boundary + "\n";
    messages += "Content-Type: message/rfc822\n\n";
    quotes += "Content-Type: multipart/mixed; boundary=\"" + boundary + "\\\n ;;;=\"=;\n";
  }
  const std::string base64_part = "Content-Transfer-Encoding: base64\n\n" + attachment;
  for (const std::string& text :
       {deep + base64_part, messages + base64_part, quotes + base64_part,
        kHead + "X-Long: " + std::string(3 << 20, 'x') + "\n" + base64_part,
        kHead + "Content-Type: multipart/mixed; boundary=\"" + std::string(100'000, 'b') + "\"\n" +
            base64_part,
        message(std::string(100'000, '\0') + attachment), message(attachment + std::string(100'000, '\0')),
        message(std::string(300'000, '\n') + attachment), message(attachment, "base64", std::string(70, '-')),
        message(std::string(1 << 20, '-') + "\n--\n" + attachment),
        kEnvelope + std::string(1 << 20, '\n') + kEnvelope,
        message(with_line_ends(std::string(200'000, '\n'), "\n--=_") + attachment)})
    check_closed_or_exact(bytes_of(text));
  std::string envelopes;
  for (int i = 0; i < 5000; ++i) envelopes += kEnvelope + "\n";
  check_closed_or_exact(bytes_of(kEnvelope + kHead + "\n" + envelopes));
}
