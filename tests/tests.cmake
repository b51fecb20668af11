add_test(NAME layers COMMAND ${CMAKE_SOURCE_DIR}/scripts/check_layers)
add_test(NAME layers_are_checked COMMAND ${CMAKE_SOURCE_DIR}/tests/scripts/check_layers_test.sh)
