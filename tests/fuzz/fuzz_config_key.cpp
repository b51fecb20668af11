// Configs and key files from hostile bytes. Passwords are not tried: a key file may ask for a second of work,
// which would be all that the fuzzer does.
#include "store/config.h"
#include "store/key_file.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const kin::ByteView input(data, size);
  if (auto config = kin::store::decode_config(input)) {
    const kin::Key key = config->plain_master_key.value_or(kin::Key{});
    (void)kin::store::verify_config(input, key, *config);
  }
  (void)kin::store::read_key_info(input);
  return 0;
}
