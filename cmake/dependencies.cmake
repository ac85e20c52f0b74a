find_package(Threads REQUIRED)
if(CGRT_CUDA)
  find_package(CUDAToolkit 13.0 REQUIRED)
endif()
find_package(absl REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json 3 REQUIRED)
find_package(CLI11 REQUIRED)
find_path(CGRT_XXHASH_INCLUDE_DIR xxhash.h REQUIRED) # libxxhash-dev: the header alone is used
if(CGRT_BUILD_TESTS)
  find_package(Catch2 REQUIRED) # 2.13 or 3: tests/support/catch.h
endif()

# Debian's imported targets name the shared libraries of Abseil; carried binaries need the archives.
if(CGRT_STATIC)
  get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
  foreach(target IN LISTS imported)
    get_target_property(shared ${target} IMPORTED_LOCATION_NONE)
    string(REGEX REPLACE "\\.so[.0-9]*$" ".a" archive "${shared}")
    if(target MATCHES "^absl::" AND EXISTS "${archive}")
      set_target_properties(${target} PROPERTIES IMPORTED_LOCATION_NONE "${archive}")
    endif()
  endforeach()
endif()
