// Included first by the headers that everything else includes, so that a build with another language level is told.
#pragma once

#if __cplusplus < 202002L
#error \
    "cgrt needs C++20. CMake: set(CMAKE_CXX_STANDARD 20), and set(CMAKE_CUDA_STANDARD 20) for .cu files. Compilers: -std=c++20."
#endif
