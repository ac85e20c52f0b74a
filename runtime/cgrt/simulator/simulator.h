// A CUDA driver in software, behind the same table as the real one (driver/api.h). For tests, and
// for machines without a GPU. It never claims a GPU time: elapsed time is an error here.
//
//   Simulator simulator({.seed = 7});
//   absl::Status status = build_and_launch();   // any program that uses cgrt
//   CHECK(simulator.live_handles() == 0);
//
// While a Simulator lives its table is in force; its destructor puts the table before it back.
// Work that is put into a stream runs when somebody waits for it or asks for it: among the streams
// and graph nodes that may run next, one is picked at random from `seed`, so that a missing edge or
// a missing wait shows. Kernels run their host bodies (launch/kernel.h).
//
// An external semaphore is a file of 8 bytes (memfd_create), whose descriptor is imported: its word is the value, and 1
// while a binary semaphore is signaled. Another process or the host signals and waits by writing and reading it.
//
// One at a time in a process; a second one aborts. Objects of this library that were made on it must
// be gone before it is. Calls through the table are serialized by one lock.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "cgrt/driver/kernel_identity.h"

namespace cgrt {

struct SimulatorOptions {
  std::uint64_t seed = 0;
  int device_count = 1;
  std::size_t memory_bytes = std::size_t{8} << 30;  // per device; an allocation beyond it fails
  int ptx_version = 90;      // that kernels were compiled for; below 90: the device has translated them
  int largest_cluster = 16;  // blocks, 1 to 16; 8 at most of a kernel without allow_large_clusters
};

class Simulator {
 public:
  explicit Simulator(SimulatorOptions options = {});
  ~Simulator();
  Simulator(const Simulator&) = delete;
  Simulator& operator=(const Simulator&) = delete;

  // For programs that run with and without a GPU: a simulator where there is no device, with a sentence on standard
  // output that says so and why; null, and no word, where there is one or a simulator is in force already.
  //
  //   const std::unique_ptr<cgrt::Simulator> simulator = cgrt::Simulator::if_no_device();
  //
  // There is none when no driver can be loaded or started, and when the driver has no device (no GPU in this
  // machine or container, an empty CUDA_VISIBLE_DEVICES). Null on any other error, which the next call will tell.
  static std::unique_ptr<Simulator> if_no_device(SimulatorOptions options = {});

  // Streams, events, graphs, executables, allocations, user objects, external semaphores and loaded images that were
  // created and not given back; also reserved addresses and physical memory. Graphs and executables inside others, and
  // primary contexts, do not count. Not beside other calls.
  std::size_t live_handles() const;
  // The same by kind, for a test's message: "2 events, 1 graph".
  std::string live_handles_text() const;

  // A kernel of that name, in images that are loaded afterwards, is run by `kernel`'s host body, with its parameters:
  //
  //   simulator.provide("scale", *make_kernel<scale>().identity());
  //
  // `symbol` is as in the image: mangled. Thread-safe.
  void provide(std::string symbol, const driver::KernelIdentity& kernel);

  // Nothing that is or will be put into `stream` starts before release(): work is then pending for
  // certain. Synchronizing with a held stream is a deadlock on a device; here it fails with
  // CUDA_ERROR_LAUNCH_TIMEOUT, once, and loses nothing. Thread-safe. Nothing happens for a stream that is not there.
  void hold(CUstream stream);
  void release(CUstream stream);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cgrt
