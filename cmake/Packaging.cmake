# Install, export for find_package(TensorPlayDistributed), and the .deb of the binaries.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(DIRECTORY include/tensorplay DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS tensorplay_distributed EXPORT TensorPlayDistributedTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS tprun tpstore tpbackends train RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES $<TARGET_FILE_DIR:tprun>/tplaunch DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES docs/man/tprun.1 docs/man/tpstore.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tprun)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/tprun)

# Completion, printed by the program itself, where each shell looks for it.
set(completions ${PROJECT_BINARY_DIR}/completions)
add_custom_command(
  OUTPUT ${completions}/tprun ${completions}/_tprun ${completions}/tprun.fish
  COMMAND ${CMAKE_COMMAND} -E make_directory ${completions}
  COMMAND tprun --print-completion bash > ${completions}/tprun
  COMMAND tprun --print-completion zsh > ${completions}/_tprun
  COMMAND tprun --print-completion fish > ${completions}/tprun.fish
  DEPENDS tprun
  VERBATIM)
add_custom_target(completions ALL DEPENDS ${completions}/tprun)
install(FILES ${completions}/tprun DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${completions}/_tprun DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${completions}/tprun.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

install(EXPORT TensorPlayDistributedTargets NAMESPACE TensorPlayDistributed::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/TensorPlayDistributed)
configure_package_config_file(cmake/TensorPlayDistributedConfig.cmake.in TensorPlayDistributedConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/TensorPlayDistributed)
write_basic_package_version_file(TensorPlayDistributedConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TensorPlayDistributedConfig.cmake
              ${PROJECT_BINARY_DIR}/TensorPlayDistributedConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/TensorPlayDistributed)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tprun)
set(CPACK_PACKAGE_CONTACT "tprun maintainers <tprun@example.org>")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
# The mpi backend would make the package depend on an MPI: cmake --install has it, the .deb does not.
set(CPACK_INSTALL_CMAKE_PROJECTS "${PROJECT_BINARY_DIR};${PROJECT_NAME};Unspecified;/")
include(CPack)
