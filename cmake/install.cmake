include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(libraries cgrt_ir cgrt_inspect cgrt_runtime cgrt_simulator cgrt_kernels cgrt_cub)
if(TARGET cgrt_cublaslt)
  list(APPEND libraries cgrt_cublaslt)
endif()
install(TARGETS ${libraries} EXPORT cgrt
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS graphdump RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY runtime/cgrt DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "*.cuh")
install(DIRECTORY kernels/cgrt_kernels DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cgrt)
install(EXPORT cgrt NAMESPACE cgrt:: DESTINATION ${package_dir} FILE cgrt-targets.cmake)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cgrt-config-version.cmake COMPATIBILITY SameMinorVersion)
file(WRITE ${PROJECT_BINARY_DIR}/cgrt-config.cmake [[
include(CMakeFindDependencyMacro)
find_dependency(Threads)
find_dependency(CUDAToolkit 13.0)
find_dependency(absl)
include(${CMAKE_CURRENT_LIST_DIR}/cgrt-targets.cmake)
# CMake before 3.25.2 does not know that nvcc speaks C++20, which cgrt's headers need.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
if(NOT DEFINED CMAKE_CUDA_STANDARD)
  set(CMAKE_CUDA_STANDARD 20)
endif()
]])
install(FILES ${PROJECT_BINARY_DIR}/cgrt-config.cmake ${PROJECT_BINARY_DIR}/cgrt-config-version.cmake
  DESTINATION ${package_dir})
