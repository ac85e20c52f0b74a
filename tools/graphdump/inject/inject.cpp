// What `graphdump time` and `graphdump save` need besides the hooks: the driver loads this library into the process at
// its start (CUDA_INJECTION64_PATH), and it has CUPTI measure, or tell which code is loaded. A failure in here is a
// note in the session file, never one of the process.

#include <cuda.h>
#include <cupti.h>

#include <cstdint>
#include <string>

#include "inject/cupti.h"
#include "inject/images.h"
#include "inject/recorder.h"
#include "inject/saving.h"
#include "inject/session.h"
#include "inject/timing.h"

namespace graphdump {
namespace {

void CUPTIAPI on_callback(void* cupti, CUpti_CallbackDomain, CUpti_CallbackId id, const void* data) {
  const void* const what = static_cast<const CUpti_ResourceData*>(data)->resourceDescriptor;
  if (id == CUPTI_CBID_RESOURCE_MODULE_LOADED) {
    const auto& module = *static_cast<const CUpti_ModuleResourceData*>(what);
    return images::on_loaded({module.pCubin, module.cubinSize});
  }
  const auto& graph = *static_cast<const CUpti_GraphData*>(what);
  if (id == CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING) return recorder::on_node_destroy(graph.node);
  std::uint64_t number = 0;
  if (static_cast<const Cupti*>(cupti)->GetGraphNodeId(graph.node, &number) != CUPTI_SUCCESS) return;
  recorder::on_node_clone(graph.originalNode, graph.node, graph.graph, number);
}

void start() {
  if (session() == nullptr) return;
  std::string error;
  const Cupti* const cupti = load_cupti(&error);
  CUpti_SubscriberHandle subscriber = nullptr;
  if (cupti == nullptr || !subscribe(*cupti, &on_callback, &subscriber, &error)) {
    return note((saving::is_on() ? "The code of libraries is not known. " : "Nothing is measured. ") + error);
  }
  if (saving::is_on()) {
    cupti->EnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED);
    return;
  }
  if (!timing::start(*cupti, &error)) return note(error);
  for (const CUpti_CallbackId id :
       {CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, CUPTI_CBID_RESOURCE_GRAPHNODE_DESTROY_STARTING}) {
    cupti->EnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, id);
  }
}

}  // namespace
}  // namespace graphdump

// The driver calls it while it initializes: it cannot be called yet.
extern "C" [[gnu::visibility("default")]] int InitializeInjection() {
  graphdump::start();
  return 1;
}
