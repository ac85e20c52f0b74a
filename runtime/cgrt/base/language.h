// Fails the build with a sentence where the language is older than C++20. The headers that every other header includes
// include this one first.
#pragma once

#if __cplusplus < 202002L
#error \
    "cgrt needs C++20. CMake: set(CMAKE_CXX_STANDARD 20), and set(CMAKE_CUDA_STANDARD 20) for .cu files. Compilers: -std=c++20."
#endif
