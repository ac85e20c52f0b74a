// How `graphdump run` tells the library that it has injected what to do: by environment variables, since the processes
// that the command starts are to be recorded, too.
#pragma once

namespace graphdump {

inline constexpr char kPreloadLibrary[] = "libgraphdump_preload.so";
inline constexpr char kLibrary[] = "libgraphdump_inject.so";  // the recorder

inline constexpr char kPreloadVariable[] = "LD_PRELOAD";
inline constexpr char kLibraryVariable[] = "GRAPHDUMP_LIBRARY";  // where the preloaded one finds the recorder
inline constexpr char kNvtxInjectionVariable[] = "NVTX_INJECTION64_PATH";
inline constexpr char kInjectionVariable[] = "CUDA_INJECTION64_PATH";  // to measure times

inline constexpr char kFolderVariable[] = "GRAPHDUMP_FOLDER";
inline constexpr char kMaxBytesVariable[] = "GRAPHDUMP_MAX_BYTES";
inline constexpr char kMinNodesVariable[] = "GRAPHDUMP_MIN_NODES";
inline constexpr char kTraceVariable[] = "GRAPHDUMP_TRACE";  // there: a trace is written

// Of `graphdump save`.
inline constexpr char kSaveVariable[] = "GRAPHDUMP_SAVE";  // the folder for bundles; not there: none are saved
inline constexpr char kSaveGraphsVariable[] = "GRAPHDUMP_SAVE_GRAPHS";        // numbers, with commas
inline constexpr char kSaveRangeVariable[] = "GRAPHDUMP_SAVE_RANGE";          // of NVTX
inline constexpr char kSaveLaunchVariable[] = "GRAPHDUMP_SAVE_LAUNCH";        // from 1
inline constexpr char kSaveInputsVariable[] = "GRAPHDUMP_SAVE_INPUTS";        // as inject/marks.h has them, a line each
inline constexpr char kSaveOutputsVariable[] = "GRAPHDUMP_SAVE_OUTPUTS";      // the same
inline constexpr char kSaveDisplacedVariable[] = "GRAPHDUMP_SAVE_DISPLACED";  // there: memory has other addresses

}  // namespace graphdump
