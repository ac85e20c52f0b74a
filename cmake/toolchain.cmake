# Language level, warnings and sanitizers, as one interface target: cgrt_options.

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

add_library(cgrt_options INTERFACE)
target_compile_options(cgrt_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror>
  # -Wpedantic and -Wconversion fire on code that nvcc itself generates.
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra
    -Werror=all-warnings,default-stream-launch -Xptxas=-warn-spills>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlapping copies in std::string at -O3 that are not there (GCC bug 105651).
  target_compile_options(cgrt_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(CGRT_SANITIZE)
  target_compile_options(cgrt_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${CGRT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer>)
  target_link_options(cgrt_options INTERFACE -fsanitize=${CGRT_SANITIZE})
endif()
if(CGRT_STATIC)
  add_link_options(-static-libstdc++ -static-libgcc)
endif()
