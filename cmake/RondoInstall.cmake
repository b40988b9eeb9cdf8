# Installs the library, its headers, the programs, and what find_package(rondo) and pkg-config need.
include(CMakePackageConfigHelpers)

install(TARGETS rondo EXPORT rondo_targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/rondo DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
install(EXPORT rondo_targets NAMESPACE rondo:: FILE rondoTargets.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rondo)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/rondoConfig.cmake.in ${PROJECT_BINARY_DIR}/rondoConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rondo)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/rondoConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/rondoConfig.cmake ${PROJECT_BINARY_DIR}/rondoConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/rondo)

# The prefix is computed from where rondo.pc lies, so an installed tree may be moved.
file(RELATIVE_PATH RONDO_PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/rondo.pc.in ${PROJECT_BINARY_DIR}/rondo.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/rondo.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
