# Finds libxdelta3 and its header, and defines the target xdelta3::xdelta3.
#
# A library of the system is preferred (CMAKE_PREFIX_PATH counts as such); next comes the one that
# scripts/setup builds in .deps/xdelta3. Header and library are always taken from the same place.
#
# xdelta3.h is plain C and does not say so: in C++, put extern "C" { } around its include.

find_path(Xdelta3_INCLUDE_DIR xdelta3.h)
find_library(Xdelta3_LIBRARY xdelta3)

if(NOT Xdelta3_INCLUDE_DIR OR NOT Xdelta3_LIBRARY)
  unset(Xdelta3_INCLUDE_DIR CACHE)
  unset(Xdelta3_LIBRARY CACHE)
  get_filename_component(_xdelta3_root "${CMAKE_CURRENT_LIST_DIR}/../../.deps/xdelta3" ABSOLUTE)
  find_path(Xdelta3_INCLUDE_DIR xdelta3.h PATHS "${_xdelta3_root}/include" NO_DEFAULT_PATH)
  find_library(Xdelta3_LIBRARY xdelta3 PATHS "${_xdelta3_root}/lib" NO_DEFAULT_PATH)
  unset(_xdelta3_root)
endif()

# It reads sections compressed with LZMA.
find_library(Xdelta3_LZMA_LIBRARY lzma)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Xdelta3
  REQUIRED_VARS Xdelta3_LIBRARY Xdelta3_INCLUDE_DIR Xdelta3_LZMA_LIBRARY
  REASON_FAILURE_MESSAGE "scripts/setup builds it")
mark_as_advanced(Xdelta3_INCLUDE_DIR Xdelta3_LIBRARY Xdelta3_LZMA_LIBRARY)

if(Xdelta3_FOUND AND NOT TARGET xdelta3::xdelta3)
  add_library(xdelta3::xdelta3 UNKNOWN IMPORTED)
  set_target_properties(xdelta3::xdelta3 PROPERTIES
    IMPORTED_LOCATION "${Xdelta3_LIBRARY}"
    INTERFACE_LINK_LIBRARIES "${Xdelta3_LZMA_LIBRARY}"
    # Imported, hence a system directory: our warnings do not apply to xdelta3.h.
    INTERFACE_INCLUDE_DIRECTORIES "${Xdelta3_INCLUDE_DIR}"
    # xdelta3.h expects its own configure script's results, and lays out its structs by them. They
    # must be those the library was built with (xdelta3_flags in scripts/setup).
    INTERFACE_COMPILE_DEFINITIONS
      "SIZEOF_SIZE_T=__SIZEOF_SIZE_T__;SIZEOF_UNSIGNED_INT=__SIZEOF_INT__;SIZEOF_UNSIGNED_LONG=__SIZEOF_LONG__;SIZEOF_UNSIGNED_LONG_LONG=__SIZEOF_LONG_LONG__;XD3_DEBUG=0")
endif()
