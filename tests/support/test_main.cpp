#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

#if defined(__SANITIZE_THREAD__)
// The system's RocksDB is not built with the thread sanitizer, which therefore does not see how its threads
// agree.
extern "C" const char* __tsan_default_suppressions();  // declared by no header
extern "C" const char* __tsan_default_suppressions() { return "race:librocksdb\n"; }
#endif
