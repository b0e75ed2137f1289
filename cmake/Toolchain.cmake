# Language, warnings, sanitizers, ccache: what every target of this repository is compiled with.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib/${CMAKE_LIBRARY_ARCHITECTURE};$ORIGIN/../lib")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(TP_CCACHE ccache)
if(TP_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TP_CCACHE})
endif()

find_package(Threads REQUIRED)

# Interface target that carries the house's compile options; every target links it privately.
add_library(tp_options INTERFACE)
target_compile_options(tp_options INTERFACE -Wall -Wextra -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees an overlap in every "literal" + std::string (its bug 105651).
  target_compile_options(tp_options INTERFACE -Wno-restrict)
endif()
target_include_directories(tp_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
if(TP_SANITIZE)
  target_compile_options(tp_options INTERFACE -fsanitize=${TP_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(tp_options INTERFACE -Wno-maybe-uninitialized)
  endif()
  target_link_options(tp_options INTERFACE -fsanitize=${TP_SANITIZE})
  if(TP_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(tp_options INTERFACE -Wno-tsan)
  endif()
endif()

if(TP_BUILD_FUZZERS)
  target_compile_options(tp_options INTERFACE -fsanitize=fuzzer-no-link)
endif()

# tp_library(name SOURCES... LINK targets...): one static library per folder of the design.
function(tp_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                             $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  target_compile_definitions(${name} PRIVATE TP_BUILDING_LIBRARY)
  target_link_libraries(${name} PUBLIC ${ARG_PUBLIC} PRIVATE tp_options ${ARG_PRIVATE})
endfunction()

# Programs that must run anywhere carry libstdc++ with them.
function(tp_link_standalone name)
  if(NOT TP_SANITIZE)
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()
