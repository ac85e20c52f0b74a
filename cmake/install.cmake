include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# What each component needs: the first no CUDA.
set(data_libraries cgrt_ir cgrt_inspect cgrt_record cgrt_saved)
set(cuda_libraries)
get_property(families GLOBAL PROPERTY cgrt_families)
list(TRANSFORM families PREPEND kernels_)
foreach(name runtime bundle simulator kernels ${families} cub cublaslt)
  if(TARGET cgrt_${name})
    list(APPEND cuda_libraries cgrt_${name})
  endif()
endforeach()
install(TARGETS ${data_libraries} EXPORT cgrt-data
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS graphdump RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY runtime/cgrt DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "*.cuh" PATTERN "inspect/page" EXCLUDE)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cgrt)
install(EXPORT cgrt-data NAMESPACE cgrt:: DESTINATION ${package_dir} FILE cgrt-data-targets.cmake)
if(CGRT_CUDA)
  install(TARGETS graphdump_inject graphdump_preload LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(TARGETS ${cuda_libraries} EXPORT cgrt-cuda
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(DIRECTORY kernels/cgrt_kernels DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh")
  install(EXPORT cgrt-cuda NAMESPACE cgrt:: DESTINATION ${package_dir} FILE cgrt-cuda-targets.cmake)
  file(RELATIVE_PATH cgrt_pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  configure_file(cmake/cgrt.pc.in cgrt.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/cgrt.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
if(BUILD_SHARED_LIBS)
  set_target_properties(graphdump PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
endif()
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cgrt-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/cgrt-config.cmake ${PROJECT_BINARY_DIR}/cgrt-config-version.cmake DESTINATION ${package_dir})
