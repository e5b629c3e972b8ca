# What `cmake --install` puts where. Four components, each with its own export set, so that a tree
# may hold some of them: Runtime and C need no MLIR at the consumer, Tools is programs, Compiler is
# the dialects and passes as archives and headers.
include(CMakePackageConfigHelpers)
set(NCCLX_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/NCCLX")

get_property(_libraries GLOBAL PROPERTY NCCLX_LIBRARIES)
install(TARGETS ${_libraries} EXPORT NCCLXCompilerTargets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT Compiler)
foreach(room dialect passes codegen)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/${room}/include/ncclx"
    "${PROJECT_BINARY_DIR}/${room}/include/ncclx"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT Compiler
    FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.inc" PATTERN "CMakeFiles" EXCLUDE)
endforeach()

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/NCCLXConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/NCCLXConfig.cmake" INSTALL_DESTINATION "${NCCLX_CMAKE_DIR}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/NCCLXConfigVersion.cmake"
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
foreach(component Runtime C Tools Compiler)
  install(EXPORT NCCLX${component}Targets NAMESPACE NCCLX:: DESTINATION "${NCCLX_CMAKE_DIR}"
    COMPONENT ${component})
  # Each brings the way to find it.
  install(FILES "${PROJECT_BINARY_DIR}/NCCLXConfig.cmake"
    "${PROJECT_BINARY_DIR}/NCCLXConfigVersion.cmake"
    DESTINATION "${NCCLX_CMAKE_DIR}" COMPONENT ${component})
endforeach()
# ncclx_add_schedule() needs the tool, and its libraries the runtime.
install(FILES "${CMAKE_CURRENT_LIST_DIR}/NCCLXSchedule.cmake" DESTINATION "${NCCLX_CMAKE_DIR}"
  COMPONENT Tools)
install(FILES "${CMAKE_CURRENT_LIST_DIR}/NCCLXMLIR.cmake" DESTINATION "${NCCLX_CMAKE_DIR}"
  COMPONENT Compiler)
