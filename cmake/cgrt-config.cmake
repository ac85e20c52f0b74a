# find_package(cgrt) gives all of it; find_package(cgrt COMPONENTS inspect) needs no CUDA.
include(CMakeFindDependencyMacro)

set(cgrt_components ir inspect)
if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/cgrt-cuda-targets.cmake)
  list(APPEND cgrt_components runtime simulator kernels cub cublaslt)
endif()
foreach(component IN LISTS cgrt_FIND_COMPONENTS)
  if(NOT component IN_LIST cgrt_components)
    set(cgrt_FOUND FALSE)
    set(cgrt_NOT_FOUND_MESSAGE "cgrt has no component \"${component}\" here; it has ${cgrt_components}.")
    return()
  endif()
endforeach()
if(NOT cgrt_FIND_COMPONENTS)
  set(cgrt_FIND_COMPONENTS ${cgrt_components})
endif()

find_dependency(Threads)
find_dependency(absl)
include(${CMAKE_CURRENT_LIST_DIR}/cgrt-data-targets.cmake)

list(REMOVE_ITEM cgrt_FIND_COMPONENTS ir inspect)
if(cgrt_FIND_COMPONENTS)
  find_dependency(CUDAToolkit 13.0)
  include(${CMAKE_CURRENT_LIST_DIR}/cgrt-cuda-targets.cmake)
  # nvcc's C++20, for targets that link cgrt, where CMake can ask for it. CMake before 3.25.2 cannot: there it is told
  # how, and a target with .cu files sets CUDA_STANDARD 20 itself (the headers say so).
  if("cuda_std_20" IN_LIST CMAKE_CUDA_COMPILE_FEATURES)
    target_compile_features(cgrt::runtime INTERFACE cuda_std_20)
  elseif(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  if(CMAKE_CUDA_ARCHITECTURES STREQUAL "75")
    message(NOTICE "cgrt: CMAKE_CUDA_ARCHITECTURES is 75, nvcc's default. Set it to those of your GPUs before "
      "project(), or with -D: 80-real;90-real;100 has kernels of your own for all that cgrt is built for.")
  endif()
endif()
