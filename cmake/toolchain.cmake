# Language level, warnings, sanitizers and visibility: the interface target cgrt_options, and what libraries of
# cgrt have beyond it.

# CMake before 3.25.2 does not know that nvcc speaks C++20.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
foreach(language CXX CUDA)
  set(CMAKE_${language}_STANDARD 20)
  set(CMAKE_${language}_STANDARD_REQUIRED ON)
  set(CMAKE_${language}_EXTENSIONS OFF)
endforeach()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Warnings are errors for whoever works on cgrt; -DCMAKE_COMPILE_WARNING_AS_ERROR=OFF for whoever only builds it.
if(NOT DEFINED CMAKE_COMPILE_WARNING_AS_ERROR)
  set(CMAKE_COMPILE_WARNING_AS_ERROR ${PROJECT_IS_TOP_LEVEL})
endif()

add_library(cgrt_options INTERFACE)
target_compile_options(cgrt_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion>
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-sign-conversion> # which g++'s -Wconversion has not
  # -Wpedantic and -Wconversion fire on code that nvcc itself generates.
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra -Werror=default-stream-launch -Xptxas=-warn-spills>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlapping copies in std::string at -O3 that are not there (GCC bug 105651).
  target_compile_options(cgrt_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
# A class that is complete in a .cpp file alone may have members of unnamed namespaces: g++ allows that in the main source
# file, and in a unity build a .cpp file is an included one.
target_compile_options(cgrt_options INTERFACE
  $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>:-Wno-subobject-linkage>)
if(CGRT_SANITIZE)
  target_compile_options(cgrt_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${CGRT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer>)
  target_link_options(cgrt_options INTERFACE -fsanitize=${CGRT_SANITIZE})
  set(CMAKE_CUDA_HOST_LINK_LAUNCHER ${CMAKE_CXX_COMPILER}) # the runtime of the compiler that instrumented
endif()
if(CGRT_STATIC)
  add_link_options(-static-libstdc++ -static-libgcc)
endif()

# A library of cgrt. Linked statically into a shared object it is that object's own and exports nothing, or two
# objects with a copy each would use halves of both. BUILD_SHARED_LIBS makes one copy for all of a process; its
# soname has the whole version, since no two are promised to be of one binary interface.
function(cgrt_add_library name)
  add_library(cgrt_${name} ${ARGN})
  add_library(cgrt::${name} ALIAS cgrt_${name})
  set_target_properties(cgrt_${name} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(cgrt_${name} PUBLIC cxx_std_20)
  target_link_libraries(cgrt_${name} PRIVATE $<BUILD_INTERFACE:cgrt_options>)
  if(BUILD_SHARED_LIBS)
    set_target_properties(cgrt_${name} PROPERTIES
      SOVERSION ${PROJECT_VERSION} INSTALL_RPATH "$ORIGIN")
  else()
    set_target_properties(cgrt_${name} PROPERTIES
      CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  endif()
endfunction()

# With sanitizers, targets of many files parse once what most of them include. The presets release and gpu, which have
# neither this nor unity builds, show that each file includes what it needs.
function(cgrt_precompile)
  foreach(target IN LISTS ARGN)
    if(CGRT_SANITIZE)
      target_precompile_headers(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/cmake/precompiled.h>)
    endif()
  endforeach()
endfunction()
