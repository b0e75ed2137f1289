# Third-party packages, all from the distribution. Header-only ones are wrapped as SYSTEM interface targets so that
# their warnings are not ours.
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)
find_path(TP_ASIO_INCLUDE_DIR asio.hpp REQUIRED)
find_path(TP_DLPACK_INCLUDE_DIR dlpack/dlpack.h REQUIRED)

# spdlog and fmt header-only: linked statically into what uses them, and nothing to load at start-up.
add_library(tp_spdlog INTERFACE)
target_include_directories(tp_spdlog SYSTEM INTERFACE
                           $<TARGET_PROPERTY:spdlog::spdlog_header_only,INTERFACE_INCLUDE_DIRECTORIES>)
target_compile_definitions(tp_spdlog INTERFACE SPDLOG_FMT_EXTERNAL FMT_HEADER_ONLY=1)

add_library(tp_asio INTERFACE)
target_include_directories(tp_asio SYSTEM INTERFACE ${TP_ASIO_INCLUDE_DIR})
target_compile_definitions(tp_asio INTERFACE ASIO_STANDALONE ASIO_NO_DEPRECATED)
target_link_libraries(tp_asio INTERFACE Threads::Threads)

add_library(tp_gloo INTERFACE)
find_path(TP_GLOO_INCLUDE_DIR gloo/context.h REQUIRED)
find_library(TP_GLOO_LIBRARY gloo REQUIRED)
target_include_directories(tp_gloo SYSTEM INTERFACE ${TP_GLOO_INCLUDE_DIR})
target_link_libraries(tp_gloo INTERFACE ${TP_GLOO_LIBRARY})

# Only the hash functions of Mbed TLS, linked statically: nothing to load at start-up.
add_library(tp_mbedcrypto INTERFACE)
find_path(TP_MBEDTLS_INCLUDE_DIR mbedtls/md.h REQUIRED)
find_library(TP_MBEDCRYPTO_LIBRARY NAMES libmbedcrypto.a mbedcrypto REQUIRED)
target_include_directories(tp_mbedcrypto SYSTEM INTERFACE ${TP_MBEDTLS_INCLUDE_DIR})
target_link_libraries(tp_mbedcrypto INTERFACE ${TP_MBEDCRYPTO_LIBRARY})
