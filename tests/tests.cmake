# Unit tests: one program, in five parts, so that two processors have equal work.
find_path(CATCH2_INCLUDE catch2/catch.hpp REQUIRED)

# Catch2 itself, which is not ours to warn about, to optimise or to look for faults in: that takes two minutes.
add_library(catch_main OBJECT tests/support/test_main.cpp)
target_compile_options(catch_main PRIVATE -w -O0 -fno-sanitize=address,undefined)

# What content the tests are made with: under sanitizers, making it took longer than the tests, so it is optimised.
add_library(test_data STATIC tests/support/edits.cpp tests/support/random_bytes.cpp tests/support/source_directory.cpp)
set_source_files_properties(tests/support/source_directory.cpp PROPERTIES
  COMPILE_DEFINITIONS "KIN_SOURCE_DIRECTORY=\"${CMAKE_SOURCE_DIR}\"" SKIP_UNITY_BUILD_INCLUSION ON)
target_compile_options(test_data PRIVATE -O2)
target_link_libraries(test_data PUBLIC kin_settings)

# optimised_first(TEST LIBRARY...): the linker takes the first copy that it meets of an inline function, a std::vector's
# for instance. So the libraries are named before the tests, whose copies are slow, and before Catch2, whose copies are
# not sanitized either: code under test would run them.
function(optimised_first test)
  list(TRANSFORM ARGN REPLACE "(.+)" "$<TARGET_FILE:\\1>")
  list(JOIN ARGN "," files)
  target_link_options(${test} PRIVATE "LINKER:--whole-archive,${files},--no-whole-archive")
endfunction()

add_executable(kin_tests
  tests/cmd/json_writer_test.cpp
  tests/lib/base/crc32_test.cpp
  tests/lib/base/file_test.cpp
  tests/lib/base/hash_test.cpp
  tests/lib/base/ordered_stage_test.cpp
  tests/lib/base/text_test.cpp
  tests/lib/base/wire_test.cpp
  tests/lib/base/worker_pool_test.cpp
  tests/lib/delta/block_test.cpp
  tests/lib/delta/codec_test.cpp
  tests/lib/delta/vcdiff_test.cpp
  tests/lib/engine/backup_restore_test.cpp
  tests/lib/engine/block_assembler_test.cpp
  tests/lib/engine/chain_damage_test.cpp
  tests/lib/engine/content_diff_test.cpp
  tests/lib/engine/delta_crash_test.cpp
  tests/lib/engine/detector_study_test.cpp
  tests/lib/engine/file_reader_test.cpp
  tests/lib/engine/imported_tree_test.cpp
  tests/lib/engine/path_filter_test.cpp
  tests/lib/engine/encoder_pool_test.cpp
  tests/lib/engine/recent_contents_test.cpp
  tests/lib/engine/file_sample_test.cpp
  tests/lib/engine/sample_survey_test.cpp
  tests/lib/engine/savings_test.cpp
  tests/lib/engine/segmenter_test.cpp
  tests/lib/engine/similar_files_test.cpp
  tests/lib/engine/similar_groups_test.cpp
  tests/lib/engine/restore_test.cpp
  tests/lib/engine/retention_test.cpp
  tests/lib/object/content_test.cpp
  tests/lib/object/node_test.cpp
  tests/lib/object/snapshot_test.cpp
  tests/lib/object/tree_test.cpp
  tests/lib/similarity/content_reader_test.cpp
  tests/lib/similarity/detector_test.cpp
  tests/lib/similarity/sampled_blocks_test.cpp
  tests/lib/similarity/scanner_test.cpp
  tests/lib/similarity/shared_values_index_test.cpp
  tests/lib/similarity/shingle_matrix_test.cpp
  tests/lib/similarity/shingle_filter_test.cpp
  tests/lib/similarity/shingleprint_test.cpp
  tests/lib/similarity/sif_test.cpp
  tests/lib/similarity/simihash_test.cpp
  tests/store/access_test.cpp
  tests/store/backend_test.cpp
  tests/store/check_test.cpp
  tests/store/config_test.cpp
  tests/store/copy_damage_test.cpp
  tests/store/copy_test.cpp
  tests/store/crypto_test.cpp
  tests/store/feature_index_test.cpp
  tests/store/feature_page_test.cpp
  tests/store/feature_table_test.cpp
  tests/store/index_segment_test.cpp
  tests/store/key_file_test.cpp
  tests/store/migration_test.cpp
  tests/store/object_index_test.cpp
  tests/store/block_cache_test.cpp
  tests/store/object_storage_test.cpp
  tests/store/pack_test.cpp
  tests/store/parity_test.cpp
  tests/store/prune_meeting_test.cpp
  tests/store/prune_test.cpp
  tests/store/rebase_test.cpp
  tests/store/repair_test.cpp
  tests/store/repository_crash_test.cpp
  tests/store/repository_damage_test.cpp
  tests/store/repository_features_test.cpp
  tests/store/repository_parity_test.cpp
  tests/store/repository_test.cpp
  tests/store/rocks_key_store_test.cpp
  tests/store/tree_copy_test.cpp
  tests/support/faulty_backend.cpp
)
# They compile in half the time, and run as fast; under sanitizers they need not be optimised at all.
set(test_options $<IF:$<CONFIG:Release>,-O1,-O0>)
target_compile_options(kin_tests PRIVATE ${test_options})
target_precompile_headers(kin_tests PRIVATE <catch2/catch.hpp> <fmt/core.h>)
target_link_libraries(kin_tests PRIVATE kin_settings catch_main test_data kin_store kin_lib)
optimised_first(kin_tests test_data kin_store kin_lib)
# Each test is in one of these; a new tag needs no thought. Those tagged [alone] are started by others, in processes of
# their own.
add_test(NAME unit_crash COMMAND kin_tests "[crash]")
add_test(NAME unit_engine COMMAND kin_tests "[engine]~[crash],[tree]")
add_test(NAME unit_index COMMAND kin_tests "[feature_index],[feature_page],[feature_table],[object_index]")
add_test(NAME unit_repository COMMAND kin_tests "[repository]~[crash]")
add_test(NAME unit_others COMMAND kin_tests
  "~[crash]~[engine]~[tree]~[feature_index]~[feature_page]~[feature_table]~[object_index]~[repository]~[alone]")
add_custom_target(sanitized_tests DEPENDS kin_tests)
add_custom_target(plain_tests DEPENDS kin)

# Sync: its engine with stores in memory, and each kind of store on the disk.
add_executable(sync_tests
  tests/lib/sync/block_delta_test.cpp
  tests/lib/sync/coded_symbols_test.cpp
  tests/lib/sync/dotlock_test.cpp
  tests/lib/sync/maildir_store_test.cpp
  tests/lib/sync/mbox_store_test.cpp
  tests/lib/sync/mh_store_test.cpp
  tests/lib/sync/pause_test.cpp
  tests/lib/sync/record_test.cpp
  tests/lib/sync/replica_scan_test.cpp
  tests/lib/sync/session_test.cpp
  tests/lib/sync/tree_store_test.cpp
  tests/lib/sync/version_set_test.cpp
  tests/support/separate_mount.cpp
)
target_compile_options(sync_tests PRIVATE ${test_options})
target_precompile_headers(sync_tests PRIVATE <catch2/catch.hpp> <fmt/core.h>)
target_link_libraries(sync_tests PRIVATE kin_settings catch_main test_data kin_store kin_lib)
optimised_first(sync_tests test_data kin_store kin_lib)
add_test(NAME unit_sync COMMAND sync_tests "[sync]")
add_dependencies(sanitized_tests sync_tests)

# Random programs of several clients, with kills, crashes and clocks that jump; programs that are stopped at every change
# to the disk; every byte of a repository changed; what parity heals. libsodium is here to be seeded: the same seed does
# the same.
add_executable(stress_tests
  tests/stress/client.cpp
  tests/stress/client_clock.cpp
  tests/stress/crash_points.cpp
  tests/stress/every_byte.cpp
  tests/stress/model.cpp
  tests/stress/parity_damage.cpp
  tests/stress/small_backup.cpp
  tests/stress/stress_main.cpp
  tests/stress/turns.cpp
  tests/stress/world.cpp
  tests/support/faulty_backend.cpp
)
target_compile_options(stress_tests PRIVATE ${test_options})
target_link_libraries(stress_tests PRIVATE kin_settings test_data kin_store kin_lib PkgConfig::sodium)
add_test(NAME stress COMMAND stress_tests --seeds 20)
add_test(NAME stress_crashes COMMAND stress_tests crashes --seeds 6 --stride 5)
add_test(NAME stress_bytes COMMAND stress_tests bytes --stride 61)
add_test(NAME stress_parity COMMAND stress_tests parity --seeds 8)
add_test(NAME stress_long COMMAND stress_tests --seed 1000 --seeds 500)
add_test(NAME stress_crashes_long COMMAND stress_tests crashes --seed 1000 --seeds 60 --least 10000)
add_test(NAME stress_bytes_long COMMAND stress_tests bytes)
add_test(NAME stress_parity_long COMMAND stress_tests parity --seeds 200)
set_tests_properties(stress_long stress_crashes_long stress_bytes_long stress_parity_long PROPERTIES LABELS long
  TIMEOUT 3600)
add_dependencies(plain_tests stress_tests)

# The deflate engine, in a program of its own: zlib is linked here to have streams to open.
add_executable(deflate_tests
  tests/formats/deflate/chain_tables_test.cpp
  tests/formats/deflate/hostile_test.cpp
  tests/formats/deflate/long_chains_test.cpp
  tests/formats/deflate/round_trip_test.cpp
)
target_compile_options(deflate_tests PRIVATE ${test_options})
target_precompile_headers(deflate_tests PRIVATE <catch2/catch.hpp> <fmt/core.h>)
target_link_libraries(deflate_tests PRIVATE kin_settings catch_main test_data kin_formats kin_lib PkgConfig::zlib)
optimised_first(deflate_tests test_data kin_formats kin_lib)
add_test(NAME unit_deflate COMMAND deflate_tests "~[producers]~[thorough]")
add_test(NAME unit_deflate_thorough COMMAND deflate_tests "[thorough]")
# Every encoder at every level: minutes under sanitizers, which damaged streams and fuzzing serve better.
add_test(NAME unit_deflate_producers COMMAND deflate_tests "[producers]")
set_tests_properties(unit_deflate_producers PROPERTIES LABELS slow)
# Of what was allocated where, a report by the address sanitizer shows five frames: to keep thirty, as it does when the
# tests are started by hand, takes a quarter of the time.
foreach(part crash deflate engine index others repository)
  set_tests_properties(unit_${part} PROPERTIES ENVIRONMENT ASAN_OPTIONS=malloc_context_size=5)
endforeach()
add_dependencies(plain_tests deflate_tests)

# The bzip2 engine, in the same way: libbz2 is the encoder that ours must equal.
find_package(BZip2 REQUIRED)
add_executable(bzip2_tests
  tests/formats/bzip2/encoder_test.cpp
  tests/formats/bzip2/hostile_test.cpp
  tests/formats/bzip2/stages_test.cpp
)
target_compile_options(bzip2_tests PRIVATE ${test_options})
target_precompile_headers(bzip2_tests PRIVATE <catch2/catch.hpp> <fmt/core.h>)
target_link_libraries(bzip2_tests PRIVATE kin_settings catch_main test_data kin_formats kin_lib BZip2::BZip2)
optimised_first(bzip2_tests test_data kin_formats kin_lib)
add_test(NAME unit_bzip2 COMMAND bzip2_tests)
set_tests_properties(unit_bzip2 PROPERTIES ENVIRONMENT ASAN_OPTIONS=malloc_context_size=5)
add_dependencies(sanitized_tests bzip2_tests)

# The xz engine, in the same way: liblzma is the encoder that ours must equal.
find_package(LibLZMA REQUIRED)
add_executable(xz_tests
  tests/formats/xz/encoder_test.cpp
  tests/formats/xz/hostile_test.cpp
  tests/formats/xz/parts_test.cpp
)
target_compile_options(xz_tests PRIVATE ${test_options})
target_precompile_headers(xz_tests PRIVATE <catch2/catch.hpp> <fmt/core.h>)
target_link_libraries(xz_tests PRIVATE kin_settings catch_main test_data kin_formats kin_lib LibLZMA::LibLZMA)
optimised_first(xz_tests test_data kin_formats kin_lib)
add_test(NAME unit_xz COMMAND xz_tests)
set_tests_properties(unit_xz PROPERTIES ENVIRONMENT ASAN_OPTIONS=malloc_context_size=5)
add_dependencies(plain_tests xz_tests)

# Containers: archives of real programs, opened, rebuilt, backed up and restored.
add_executable(container_tests
  tests/formats/archive_reader_test.cpp
  tests/formats/archives_test.cpp
  tests/formats/backup_test.cpp
  tests/formats/hostile_test.cpp
  tests/formats/mail_test.cpp
  tests/formats/open_test.cpp
  tests/formats/png_pdf_test.cpp
  tests/lib/sync/opened_content_test.cpp
  tests/support/faulty_backend.cpp
)
target_compile_options(container_tests PRIVATE ${test_options})
target_precompile_headers(container_tests PRIVATE <catch2/catch.hpp> <fmt/core.h>)
target_link_libraries(container_tests PRIVATE kin_settings catch_main test_data kin_formats kin_store kin_lib)
optimised_first(container_tests test_data kin_formats kin_store kin_lib)
# The thread sanitizer has nothing to find where there is one thread, and takes many times as long to say so.
if(CMAKE_CXX_FLAGS MATCHES fsanitize=thread)
  add_test(NAME unit_containers COMMAND container_tests "[backup]")
else()
  add_test(NAME unit_containers COMMAND container_tests "~[hostile]~[thorough]")
endif()
add_test(NAME unit_containers_hostile COMMAND container_tests "[hostile]~[thorough]")
add_test(NAME unit_containers_thorough COMMAND container_tests "[thorough]")
foreach(part containers containers_hostile containers_thorough deflate_thorough)
  set_tests_properties(unit_${part} PROPERTIES COST 60 ENVIRONMENT ASAN_OPTIONS=malloc_context_size=5)
endforeach()
set_tests_properties(unit_containers PROPERTIES COST 200)  # by far the longest under sanitizers: the first to start
if(CMAKE_CXX_FLAGS MATCHES fsanitize=thread)
  set_tests_properties(unit_bzip2 unit_containers_hostile unit_containers_thorough unit_deflate unit_deflate_thorough
    unit_sync unit_xz PROPERTIES LABELS slow)
endif()
add_dependencies(sanitized_tests container_tests)
add_dependencies(plain_tests container_tests)

# What small corpora take, to the byte: tests/ratio/results.csv. Slow under sanitizers, where it would count the same.
add_executable(ratio_test tests/ratio/corpora.cpp tests/ratio/ratio_test.cpp)
target_link_libraries(ratio_test PRIVATE kin_settings test_data kin_store kin_lib PkgConfig::zstd)
add_dependencies(plain_tests ratio_test)
add_test(NAME ratio COMMAND ratio_test)
set_tests_properties(ratio PROPERTIES LABELS slow SKIP_RETURN_CODE 77)

# They measure, and are no tests: scripts/bench features, scripts/bench sketch, scripts/bench similar.
add_executable(feature_store_bench EXCLUDE_FROM_ALL tests/bench/feature_store_bench.cpp)
target_link_libraries(feature_store_bench PRIVATE kin_settings kin_store kin_lib)
add_executable(scanner_bench EXCLUDE_FROM_ALL tests/bench/scanner_bench.cpp)
target_link_libraries(scanner_bench PRIVATE kin_settings test_data kin_lib)

add_executable(detector_bench EXCLUDE_FROM_ALL tests/bench/detector_bench.cpp)
target_link_libraries(detector_bench PRIVATE kin_settings kin_lib)
add_executable(stored_kin_bench EXCLUDE_FROM_ALL tests/bench/stored_kin_bench.cpp)
target_link_libraries(stored_kin_bench PRIVATE kin_settings kin_store kin_lib)

# So does this: files of deflate streams, beside zlib.
add_executable(deflate_bench EXCLUDE_FROM_ALL tests/bench/deflate_bench.cpp)
target_link_libraries(deflate_bench PRIVATE kin_settings kin_formats kin_lib PkgConfig::zlib)
# And this: bzip2 files, beside libbz2.
add_executable(bzip2_bench EXCLUDE_FROM_ALL tests/bench/bzip2_bench.cpp)
target_link_libraries(bzip2_bench PRIVATE kin_settings kin_formats kin_lib BZip2::BZip2)
# And this: .xz files, beside liblzma.
add_executable(xz_bench EXCLUDE_FROM_ALL tests/bench/xz_bench.cpp)
target_link_libraries(xz_bench PRIVATE kin_settings kin_formats kin_lib LibLZMA::LibLZMA)

# Parsers of bytes from outside: with KIN_FUZZ a fuzzer each, otherwise what was found so far is replayed.
set(fuzz_targets archive_names archive_reader block_decode block_header bzip2_rebuild coding_rebuild config_key
  container_open deflate_open deflate_rebuild feature_page index_segment mail_files mail_names marks pack parity_header
  parity_heal path_filter recipe_read restore scanner shingleprint snapshot sync_rows sync_session sync_wire sync_words
  wire_tree xdelta3_decode xz_rebuild zstd_decode)
foreach(target ${fuzz_targets})
  add_executable(fuzz_${target} tests/fuzz/fuzz_${target}.cpp)
  target_link_libraries(fuzz_${target} PRIVATE kin_settings kin_formats kin_store kin_lib)
  if(KIN_FUZZ)
    target_link_options(fuzz_${target} PRIVATE -fsanitize=fuzzer)
  else()
    target_sources(fuzz_${target} PRIVATE tests/fuzz/replay_main.cpp)
    file(GLOB inputs CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/fuzz_${target}/*)
    add_test(NAME fuzz_${target} COMMAND fuzz_${target} ${inputs})
    # Lengths that are only claimed must not be allocated: with the address sanitizer, that ends the test.
    set_tests_properties(fuzz_${target} PROPERTIES ENVIRONMENT ASAN_OPTIONS=max_allocation_size_mb=1024)
  endif()
  add_dependencies(sanitized_tests fuzz_${target})
endforeach()

# scripts/test runs each test once: these under sanitizers, all others in a release. (--quick and --long run all in a
# release, and --long all but the slow ones under sanitizers as well.) Every byte and every length of containers, and
# streams of every encoder, take minutes under sanitizers; what they have in common, and all saved inputs of the fuzzers,
# is in these.
set(sanitized unit_bzip2 unit_containers unit_crash unit_engine unit_index unit_others unit_repository unit_sync)
foreach(target ${fuzz_targets})
  list(APPEND sanitized fuzz_${target})
endforeach()
if(NOT KIN_FUZZ)
  set_property(TEST ${sanitized} APPEND PROPERTY LABELS sanitized)
endif()

# The program, as a user runs it.
set(suppress print_suppressions=0:suppressions=${CMAKE_SOURCE_DIR}/tests/support)
foreach(name access bad_input cache check containers copy damage delta disk_full drill estimate explain export forget golden import interrupt
  museum options pages parity prune repair report restore round_trip simhash similar sources streams sync sync_peers sync_ssh
  writers)
  add_test(NAME cli_${name} COMMAND ${CMAKE_SOURCE_DIR}/tests/cli/${name}_test.sh)
  set_tests_properties(cli_${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 ENVIRONMENT
    "KIN=$<TARGET_FILE:kin>;LSAN_OPTIONS=${suppress}/lsan_suppressions.txt;TSAN_OPTIONS=${suppress}/tsan_suppressions.txt")
endforeach()
# Sanitizers take more memory than is allowed: the museum is left out there, and others know by this.
if(CMAKE_CXX_FLAGS MATCHES fsanitize)
  set_property(TEST cli_explain APPEND PROPERTY ENVIRONMENT KIN_SANITIZED=1)
endif()
set_tests_properties(cli_interrupt cli_museum PROPERTIES LABELS slow)
# Hundreds of processes, which take their time under sanitizers.
set_tests_properties(cli_sync PROPERTIES TIMEOUT 1800)

# With many more seeds, rounds and kills (KIN_TEST_LONG, which scripts/test sets for these).
add_test(NAME cli_sync_long COMMAND ${CMAKE_SOURCE_DIR}/tests/cli/sync_test.sh locked kill meanwhile random)
add_test(NAME cli_repair_long COMMAND ${CMAKE_SOURCE_DIR}/tests/cli/repair_test.sh)
add_test(NAME cli_drill_long COMMAND ${CMAKE_SOURCE_DIR}/tests/cli/drill_test.sh)
set_tests_properties(cli_sync_long cli_repair_long cli_drill_long PROPERTIES LABELS long TIMEOUT 3600 ENVIRONMENT
  "KIN=$<TARGET_FILE:kin>")

# What libarchive forgets of a failed export is known by its name, which only the slow way up the stack finds.
set_property(TEST cli_export APPEND PROPERTY ENVIRONMENT ASAN_OPTIONS=fast_unwind_on_malloc=0)

# The longest first, so that no core waits for the last one. (ctest knows this by itself, but not in a new clone.)
set_tests_properties(unit_engine unit_repository unit_crash unit_deflate unit_deflate_producers unit_others unit_index PROPERTIES
  COST 60)
set_tests_properties(cli_damage cli_delta cli_interrupt cli_museum cli_streams PROPERTIES COST 30)

# The scripts.
add_test(NAME layers COMMAND ${CMAKE_SOURCE_DIR}/scripts/check_layers)
add_test(NAME layers_are_checked COMMAND ${CMAKE_SOURCE_DIR}/tests/scripts/check_layers_test.sh)
add_test(NAME trees_are_compared COMMAND ${CMAKE_SOURCE_DIR}/tests/scripts/compare_trees_test.sh)
set_tests_properties(layers layers_are_checked trees_are_compared PROPERTIES LABELS slow COST 20)
