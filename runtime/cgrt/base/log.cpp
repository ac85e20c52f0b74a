#include "cgrt/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>

namespace cgrt {
namespace {

std::shared_ptr<spdlog::logger> logger() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::shared_ptr<spdlog::logger> found = spdlog::get("cgrt");
  return found != nullptr ? found : spdlog::stderr_logger_mt("cgrt");
}

}  // namespace

void log_warning(std::string_view message) { logger()->warn("{}", message); }
void log_error(std::string_view message) { logger()->error("{}", message); }

}  // namespace cgrt
