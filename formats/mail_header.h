// What the header of a message, or of a part of one, says about its body (RFC 5322, RFC 2045).
#pragma once

#include "lib/base/bytes.h"

#include <string>

namespace kin::formats {

struct MailHeader {
  enum class Body { other, multipart, message };
  enum class Encoding { none, base64, quoted_printable };

  Body body = Body::other;
  Encoding encoding = Encoding::none;
  std::string boundary;  // of a multipart
  std::string name;      // of an attachment, for people; empty if it is not plain ASCII
};

// Takes any bytes; what is no field is passed over.
MailHeader read_mail_header(std::string_view header);

// Whether a line is a field: a name, a colon.
bool is_mail_field(std::string_view line);

// The front of a message that may have encoded parts. Strict about what a message is.
bool may_be_encoded_mail(ByteView head);

}  // namespace kin::formats
