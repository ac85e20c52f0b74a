// Semaphores of Vulkan 1.2, whose loader is opened at run time. What is declared here is what this takes of Vulkan's
// interface, so that no headers of it are needed.
#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "support/skip.h"
#include "support/test_semaphore.h"

namespace cgrt::testing {
namespace {

namespace vk {

using Instance = struct InstanceHandle*;
using PhysicalDevice = struct PhysicalDeviceHandle*;
using Device = struct DeviceHandle*;
using Semaphore = std::uint64_t;
using Result = int;  // 0: success

constexpr std::uint32_t kVersion12 = (1u << 22) | (2u << 12);
constexpr std::uint32_t kOpaqueFd = 1, kTimeline = 1;
constexpr const char* kExternalSemaphoreFd = "VK_KHR_external_semaphore_fd";

// Each structure begins with its type, and a pointer to one that extends it.
struct ApplicationInfo {
  std::uint32_t type = 0;
  const void* next = nullptr;
  const char* name = "cgrt tests";
  std::uint32_t version = 0;
  const char* engine = nullptr;
  std::uint32_t engine_version = 0;
  std::uint32_t api_version = kVersion12;
};
struct InstanceCreateInfo {
  std::uint32_t type = 1;
  const void* next = nullptr;
  std::uint32_t flags = 0;
  const ApplicationInfo* application;
  std::uint32_t layer_count = 0;
  const char* const* layers = nullptr;
  std::uint32_t extension_count = 0;
  const char* const* extensions = nullptr;
};
struct IdProperties {
  std::uint32_t type = 1000071004;
  void* next = nullptr;
  std::uint8_t device_uuid[16] = {}, driver_uuid[16] = {}, device_luid[8] = {};
  std::uint32_t node_mask = 0, is_luid_valid = 0;
};
struct DeviceProperties {
  std::uint32_t type = 1000059001;
  void* next = nullptr;
  alignas(8) std::byte properties[2048] = {};  // more than they take, which is 824
};
struct QueueCreateInfo {
  std::uint32_t type = 2;
  const void* next = nullptr;
  std::uint32_t flags = 0, family = 0, count = 1;
  const float* priorities;
};
struct TimelineFeatures {
  std::uint32_t type = 1000207000;
  void* next = nullptr;
  std::uint32_t is_enabled = 1;
};
struct DeviceCreateInfo {
  std::uint32_t type = 3;
  const void* next;
  std::uint32_t flags = 0, queue_count = 1;
  const QueueCreateInfo* queues;
  std::uint32_t layer_count = 0;
  const char* const* layers = nullptr;
  std::uint32_t extension_count = 1;
  const char* const* extensions;
  const void* features = nullptr;
};
struct SemaphoreTypeInfo {
  std::uint32_t type = 1000207002;
  const void* next = nullptr;
  std::uint32_t kind;
  std::uint64_t initial_value = 0;
};
struct ExportInfo {
  std::uint32_t type = 1000077000;
  const void* next;
  std::uint32_t handle_types = kOpaqueFd;
};
struct SemaphoreCreateInfo {
  std::uint32_t type = 9;
  const void* next;
  std::uint32_t flags = 0;
};
struct GetFdInfo {
  std::uint32_t type = 1000079001;
  const void* next = nullptr;
  Semaphore semaphore;
  std::uint32_t handle_type = kOpaqueFd;
};
struct SignalInfo {
  std::uint32_t type = 1000207005;
  const void* next = nullptr;
  Semaphore semaphore;
  std::uint64_t value;
};

struct Functions {
  Result (*create_instance)(const InstanceCreateInfo*, const void*, Instance*);
  void (*destroy_instance)(Instance, const void*);
  Result (*enumerate_devices)(Instance, std::uint32_t*, PhysicalDevice*);
  void (*get_properties)(PhysicalDevice, DeviceProperties*);
  Result (*create_device)(PhysicalDevice, const DeviceCreateInfo*, const void*, Device*);
  void* (*get_function)(Device, const char*);
  Result (*create_semaphore)(Device, const SemaphoreCreateInfo*, const void*, Semaphore*);
  void (*destroy_semaphore)(Device, Semaphore, const void*);
  Result (*get_fd)(Device, const GetFdInfo*, int*);
  Result (*get_value)(Device, Semaphore, std::uint64_t*);
  Result (*signal)(Device, const SignalInfo*);
};

}  // namespace vk

absl::Status failed(const char* call, vk::Result result) {
  return absl::InternalError(absl::StrCat(call, " returned ", result));
}

// One for the process, and never given back: what it made may be in use until the end.
struct Vulkan {
  vk::Functions functions{};
  vk::Device device = nullptr;
};
Vulkan vulkan;

// The device with that UUID; null: there is none.
vk::PhysicalDevice find_device(vk::Instance instance, const unsigned char* uuid) {
  std::uint32_t count = 0;
  if (vulkan.functions.enumerate_devices(instance, &count, nullptr) != 0) return nullptr;
  std::vector<vk::PhysicalDevice> devices(count);
  if (vulkan.functions.enumerate_devices(instance, &count, devices.data()) != 0) return nullptr;
  for (vk::PhysicalDevice device : devices) {
    vk::IdProperties id;
    vk::DeviceProperties properties;
    properties.next = &id;
    vulkan.functions.get_properties(device, &properties);
    if (std::memcmp(id.device_uuid, uuid, sizeof(id.device_uuid)) == 0) return device;
  }
  return nullptr;
}

class VulkanSemaphore final : public TestSemaphore::Impl {
 public:
  explicit VulkanSemaphore(vk::Semaphore semaphore) : semaphore_(semaphore) {}
  ~VulkanSemaphore() override { vulkan.functions.destroy_semaphore(vulkan.device, semaphore_, nullptr); }
  absl::StatusOr<int> descriptor() override {
    const vk::GetFdInfo info{.semaphore = semaphore_};
    int fd = -1;
    const vk::Result result = vulkan.functions.get_fd(vulkan.device, &info, &fd);
    return result == 0 ? absl::StatusOr<int>(fd) : failed("vkGetSemaphoreFdKHR", result);
  }
  absl::Status signal(std::uint64_t value) override {
    const vk::SignalInfo info{.semaphore = semaphore_, .value = value};
    const vk::Result result = vulkan.functions.signal(vulkan.device, &info);
    return result == 0 ? absl::OkStatus() : failed("vkSignalSemaphore", result);
  }
  absl::StatusOr<std::uint64_t> value() override {
    std::uint64_t value = 0;
    const vk::Result result = vulkan.functions.get_value(vulkan.device, semaphore_, &value);
    return result == 0 ? absl::StatusOr<std::uint64_t>(value) : failed("vkGetSemaphoreCounterValue", result);
  }

 private:
  vk::Semaphore semaphore_;
};

template <class Function>
bool find(Function& function, void* symbol) {
  function = reinterpret_cast<Function>(symbol);
  return symbol != nullptr;
}

}  // namespace

absl::Status check_vulkan(const unsigned char* uuid) {
  void* const library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return skip(absl::StrCat("no Vulkan loader (", dlerror(), ")"));
  vk::Functions& f = vulkan.functions;
  const auto symbol = [&](const char* name) { return dlsym(library, name); };
  if (!find(f.create_instance, symbol("vkCreateInstance")) || !find(f.destroy_instance, symbol("vkDestroyInstance")) ||
      !find(f.enumerate_devices, symbol("vkEnumeratePhysicalDevices")) ||
      !find(f.get_properties, symbol("vkGetPhysicalDeviceProperties2")) ||
      !find(f.create_device, symbol("vkCreateDevice")) || !find(f.get_function, symbol("vkGetDeviceProcAddr")) ||
      !find(f.create_semaphore, symbol("vkCreateSemaphore")) ||
      !find(f.destroy_semaphore, symbol("vkDestroySemaphore")) ||
      !find(f.get_value, symbol("vkGetSemaphoreCounterValue")) || !find(f.signal, symbol("vkSignalSemaphore"))) {
    return skip("the Vulkan loader is older than 1.2");
  }
  const vk::ApplicationInfo application;
  const vk::InstanceCreateInfo instance_info{.application = &application};
  vk::Instance instance = nullptr;
  if (const vk::Result result = f.create_instance(&instance_info, nullptr, &instance); result != 0) {
    return skip(absl::StrCat("no Vulkan driver (vkCreateInstance returned ", result, ")"));
  }
  const vk::PhysicalDevice physical = find_device(instance, uuid);
  if (physical == nullptr) {
    f.destroy_instance(instance, nullptr);
    return skip("no Vulkan device has the UUID of the CUDA device");
  }
  const float priority = 1;
  const vk::QueueCreateInfo queue{.priorities = &priority};
  const vk::TimelineFeatures timeline;
  const vk::DeviceCreateInfo device_info{.next = &timeline, .queues = &queue, .extensions = &vk::kExternalSemaphoreFd};
  if (const vk::Result result = f.create_device(physical, &device_info, nullptr, &vulkan.device); result != 0) {
    f.destroy_instance(instance, nullptr);
    return skip(absl::StrCat("the Vulkan device has no timeline semaphores or no ", vk::kExternalSemaphoreFd,
                             " (vkCreateDevice returned ", result, ")"));
  }
  if (!find(f.get_fd, f.get_function(vulkan.device, "vkGetSemaphoreFdKHR"))) {
    return absl::InternalError("The Vulkan device has no vkGetSemaphoreFdKHR.");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<TestSemaphore::Impl>> make_vulkan_semaphore(SemaphoreKind kind) {
  const vk::SemaphoreTypeInfo type{.kind = kind == SemaphoreKind::kTimeline ? vk::kTimeline : 0};
  const vk::ExportInfo exported{.next = &type};
  const vk::SemaphoreCreateInfo info{.next = &exported};
  vk::Semaphore semaphore = 0;
  const vk::Result result = vulkan.functions.create_semaphore(vulkan.device, &info, nullptr, &semaphore);
  if (result != 0) return failed("vkCreateSemaphore", result);
  return std::unique_ptr<TestSemaphore::Impl>(new VulkanSemaphore(semaphore));
}

}  // namespace cgrt::testing
