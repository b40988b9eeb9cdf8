# What makes builds quick, and what instruments them. Everything here is used only if it is there.

find_program(RONDO_CCACHE ccache)
if(RONDO_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${RONDO_CCACHE})
endif()

find_program(RONDO_MOLD mold)
find_program(RONDO_LLD ld.lld)
if(RONDO_MOLD)
  add_link_options(-fuse-ld=mold)
elseif(RONDO_LLD)
  add_link_options(-fuse-ld=lld)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms on std::string assignments (GCC bug 105651, fixed in 13).
  add_compile_options(-Wno-restrict)
endif()

if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # libstdc++ 12's std::stable_sort uses std::get_temporary_buffer, which is deprecated; clang says so at every use.
  add_compile_options(-Wno-deprecated-declarations)
endif()

if(RONDO_SANITIZE)
  add_compile_options(-fsanitize=${RONDO_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${RONDO_SANITIZE})
  if(RONDO_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=all)
  endif()
  if(RONDO_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC warns about every atomic_thread_fence, which TSan does not model; base/doorbell.hpp has none under TSan.
    add_compile_options(-Wno-tsan)
  endif()
endif()

if(RONDO_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "RONDO_FUZZ is on with ${CMAKE_CXX_COMPILER_ID}; libFuzzer needs clang: use the preset fuzz")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
