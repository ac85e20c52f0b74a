// How `graphdump run` tells the library that it has injected what to do: by environment variables, since the processes
// that the command starts are to be recorded, too.
#pragma once

namespace graphdump {

inline constexpr char kInjectionVariable[] = "CUDA_INJECTION64_PATH";
inline constexpr char kNvtxInjectionVariable[] = "NVTX_INJECTION64_PATH";
inline constexpr char kInjectionLibrary[] = "libgraphdump_inject.so";

inline constexpr char kFolderVariable[] = "GRAPHDUMP_FOLDER";
inline constexpr char kMaxBytesVariable[] = "GRAPHDUMP_MAX_BYTES";
inline constexpr char kMinNodesVariable[] = "GRAPHDUMP_MIN_NODES";

}  // namespace graphdump
