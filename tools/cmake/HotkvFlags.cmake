# Warnings and sanitizers for HotKV's own code, as one interface target.
add_library(hotkv_flags INTERFACE)
target_compile_options(hotkv_flags INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wnon-virtual-dtor -Wold-style-cast -Werror
  -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 reports std::string concatenation at -O3 (GCC bug 105651).
  target_compile_options(hotkv_flags INTERFACE -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # Private fields that only keep a layout; GCC has no such warning.
  target_compile_options(hotkv_flags INTERFACE -Wno-unused-private-field)
endif()
if(HOTKV_SANITIZE)
  target_compile_options(hotkv_flags INTERFACE -fsanitize=${HOTKV_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(hotkv_flags INTERFACE -fsanitize=${HOTKV_SANITIZE})
  # Instrumented code makes GCC 12 see uninitialised members of std::optional and std::function.
  target_compile_options(hotkv_flags INTERFACE -Wno-maybe-uninitialized)
  if(HOTKV_SANITIZE MATCHES "thread")
    # GCC 12 warns that TSan does not model fences; our code has none, libstdc++'s headers do.
    target_compile_options(hotkv_flags INTERFACE -Wno-tsan)
  endif()
endif()
if(HOTKV_FUZZ)
  # Coverage for libFuzzer in all our code; the fuzz targets link its main. Clang warns, GCC holds the rule.
  target_compile_options(hotkv_flags INTERFACE -Wno-error)
  target_compile_options(hotkv_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  target_link_options(hotkv_flags INTERFACE -fsanitize=address,undefined)
endif()
if(HOTKV_TEST_HOOKS)
  target_compile_definitions(hotkv_flags INTERFACE HOTKV_TEST_HOOKS=1)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Debug" OR HOTKV_TEST_HOOKS)
  target_compile_definitions(hotkv_flags INTERFACE HOTKV_DCHECKS=1 _GLIBCXX_ASSERTIONS=1)
endif()
