#include <cgrt/cgrt.h>

#include <cstdio>

int main() {
  const absl::StatusOr<int> devices = cgrt::device_count();
  std::printf("%s\n", devices.ok() ? "a driver" : std::string(devices.status().message()).c_str());
  return devices.ok() || absl::IsUnavailable(devices.status()) ? 0 : 1;
}
