// The sender in the envelope of an mbox message: what stands between "From " and the date. Mostly it is what
// the header of the message says, so that only another one is told to the other end: in the name of the item,
// as mbox messages have none. Functions without state, for any thread, and any bytes are good enough for
// them.
#pragma once

#include "lib/base/bytes.h"

#include <string>
#include <string_view>

namespace kin::sync::mbox {

// The address in Return-Path, or else in From, or else MAILER-DAEMON: what an envelope has if nothing else is
// known. `content` is as in mbox_message.h.
std::string guess_sender(ByteView content);

// As the name of an item; empty if it cannot be one.
std::string name_of_sender(std::string_view sender);
// Empty if the name is none of a sender that an envelope can have.
std::string sender_of_name(std::string_view name);

}  // namespace kin::sync::mbox
