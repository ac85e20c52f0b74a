#include "cgrt/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>

namespace cgrt {
namespace {

// spdlog's registry dies with the statics, and handles may be given back after that. This one was
// made after the registry and so dies before it.
struct RegistryIsAlive {
  static inline std::atomic<bool> value{false};
  RegistryIsAlive() {
    spdlog::get("cgrt");
    value = true;
  }
  ~RegistryIsAlive() { value = false; }
};
const RegistryIsAlive registry_is_alive;

// Never destroyed, for the same reason.
spdlog::logger& own_logger() {
  static spdlog::logger& logger = *new spdlog::logger("cgrt", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  return logger;
}

// A line that cannot be written is dropped: this runs in destructors.
void write(spdlog::level::level_enum level, std::string_view message) {
  try {
    const std::shared_ptr<spdlog::logger> theirs = RegistryIsAlive::value ? spdlog::get("cgrt") : nullptr;
    (theirs != nullptr ? *theirs : own_logger()).log(level, "{}", message);
  } catch (...) {
  }
}

}  // namespace

void log_warning(std::string_view message) { write(spdlog::level::warn, message); }
void log_error(std::string_view message) { write(spdlog::level::err, message); }

}  // namespace cgrt
